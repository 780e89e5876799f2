#include "site_agent/egress/gate.h"

#include "audit/decision_record.h"
#include "base/file.h"
#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "policy/language/facts.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kLargestPolicy = std::uint64_t{1} << 20U;

Digest DigestOf(std::string_view text) { return crypto::Sha256(AsBytes(text)); }

policy::Transfer Describe(policy::DecisionPoint point, const contracts::Plan& plan,
                          const JobBorder& border, WallTime now) {
  policy::Transfer transfer;
  transfer.point = point;
  transfer.from = contracts::PartyOf(border.site);
  transfer.to = contracts::PartyOf(border.aggregator);
  transfer.dataset = plan.dataset;
  transfer.kinds = contracts::AllKindsOf(plan);
  transfer.view = contracts::ViewOf(plan);
  transfer.purpose = contracts::PurposeOf(plan);
  transfer.plan = contracts::FactsOf(plan);
  transfer.recipients = contracts::RecipientsOf(plan, border.roster, border.aggregator);
  transfer.released_per_record = border.released_per_record;
  transfer.runs_today = border.runs_today;
  if (border.sandbox != policy::SandboxNetwork::kUnset) {
    transfer.sandbox_network = border.sandbox;
  }
  transfer.approvals = border.approvals;
  transfer.now = now;
  return transfer;
}

Decided Ask(const ForcedPolicies& policies, const policy::Transfer& transfer) {
  Decided decided{.decision = policy::Decide(policies.effective, transfer), .record = {}};
  decided.record = audit::RecordOf(decided.decision, policies.digests);
  return decided;
}

}  // namespace

StatusOr<OwnPolicies> ReadOwnPolicies(const std::string& site, const std::string& federation,
                                      const std::string& facts, std::string_view jurisdiction) {
  OwnPolicies own;
  ASSIGN_OR_RETURN(const std::string site_text, ReadFile(site, kLargestPolicy));
  ASSIGN_OR_RETURN(own.site, policy::ParsePolicy(site_text, site, policy::PolicySource::kSite));
  if (!own.site.site || own.site.site->jurisdiction.text() != jurisdiction) {
    return Error(StatusCode::kInvalidArgument, "`" + site + "`: site.jurisdiction is not `" +
                                                   std::string(jurisdiction) +
                                                   "`, where this agent's certificate places it");
  }
  own.statement = policy::StatementText(own.site);
  ASSIGN_OR_RETURN(own.federation_text, ReadFile(federation, kLargestPolicy));
  ASSIGN_OR_RETURN(own.federation, policy::ParsePolicy(own.federation_text, federation,
                                                       policy::PolicySource::kFederation));
  ASSIGN_OR_RETURN(own.facts_text, ReadFile(facts, kLargestPolicy));
  ASSIGN_OR_RETURN(own.facts, policy::ParseFacts(own.facts_text, facts));
  return own;
}

StatusOr<ForcedPolicies> MeetOnConnect(const OwnPolicies& own, std::string_view federation_text,
                                       std::string_view aggregator_text,
                                       std::string_view facts_text) {
  const auto differs = [](std::string_view what) {
    return Error(StatusCode::kFailedPrecondition,
                 "the aggregator's " + std::string(what) +
                     " is not this site's own copy: bring both to the same version");
  };
  if (federation_text != own.federation_text) {
    return differs("federation policy");
  }
  if (facts_text != own.facts_text) {
    return differs("legal facts file");
  }
  ASSIGN_OR_RETURN(const policy::Policy aggregator,
                   policy::ParsePolicy(aggregator_text, "aggregator.policy.toml",
                                       policy::PolicySource::kAggregator));
  ForcedPolicies forced{.effective = policy::Meet(own.federation, aggregator, own.site, own.facts),
                        .digests = {},
                        .approver_keys = {}};
  RETURN_IF_ERROR(forced.effective.CheckSatisfiable());
  if (own.site.approvals) {
    forced.approver_keys = own.site.approvals->keys;
  }
  forced.digests = {.effective = DigestOf(forced.effective.Text()),
                    .federation = DigestOf(federation_text),
                    .aggregator = DigestOf(aggregator_text),
                    .site = DigestOf(own.statement),
                    .facts = DigestOf(facts_text)};
  return forced;
}

Decided DecideOffer(const ForcedPolicies& policies, const contracts::Plan& plan,
                    const JobBorder& border, WallTime now) {
  return Ask(policies, Describe(policy::DecisionPoint::kOffer, plan, border, now));
}

Decided DecideDataOpen(const ForcedPolicies& policies, const contracts::Plan& plan,
                       const JobBorder& border, WallTime now) {
  return Ask(policies, Describe(policy::DecisionPoint::kDataOpen, plan, border, now));
}

Decided DecideEgress(const ForcedPolicies& policies, const contracts::Plan& plan,
                     const JobBorder& border, const UpdateFacts& update, WallTime now) {
  policy::Transfer transfer = Describe(policy::DecisionPoint::kEgress, plan, border, now);
  transfer.kinds = contracts::KindsOf(plan, update.phase);
  transfer.bytes = update.bytes;
  transfer.numbers = update.numbers;
  transfer.metrics = contracts::ScalarMetrics(update.phase);
  transfer.records_behind = update.records;
  return Ask(policies, transfer);
}

}  // namespace domicile::site_agent
