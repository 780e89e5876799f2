#include "site_agent/egress/gate.h"

#include <algorithm>
#include <set>
#include <utility>

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
  // INVARIANT: this agent builds every message from numbers on a declared grid; no other form of
  // output has a way out.
  transfer.outputs = std::set<policy::Output>{};
  transfer.plan_digest = contracts::PlanDigest(plan);
  transfer.trainer_digest = border.trainer;
  transfer.released_per_record = border.released_per_record;
  transfer.epsilon_spent = border.epsilon_spent;
  transfer.runs_today = border.runs_today;
  if (border.sandbox != policy::SandboxNetwork::kUnset) {
    // The trainer has shown that it is inside all of these walls; it knows no others.
    transfer.sandbox_network = border.sandbox;
    transfer.sandbox_profile = policy::SandboxProfile::kNamespaces;
  }
  transfer.approvals = border.approvals;
  transfer.witnesses = 0;  // nobody beside the aggregator signs this log's heads
  transfer.clock_skew = border.clock_skew;
  transfer.now = now;
  return transfer;
}

// The most people that a dataset can be about; empty if that is not known.
std::optional<std::uint64_t> MostSubjects(policy::SubjectsCount count) {
  switch (count) {
    case policy::SubjectsCount::kUnset:
    case policy::SubjectsCount::kAbove:
      return std::nullopt;
    case policy::SubjectsCount::kBelow100:
      return 99;
    case policy::SubjectsCount::kBelow1000:
      return 999;
    case policy::SubjectsCount::kBelow10000:
      return 9'999;
    case policy::SubjectsCount::kBelow100000:
      return 99'999;
    case policy::SubjectsCount::kBelow1000000:
      return 999'999;
  }
  return std::nullopt;
}

// However often they are sent, the people of a dataset are the same: it counts once a year, whole.
std::optional<std::uint64_t> SubjectsOf(const policy::Effective& effective,
                                        const DatasetAlias& dataset) {
  const auto terms = effective.Find(dataset);
  if (!terms || terms->traits.empty()) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> most = 0;
  for (const auto& clause : terms->traits) {
    const auto of_one = MostSubjects(clause.value.subjects_count);
    most = most && of_one ? std::optional(std::max(*most, *of_one)) : std::nullopt;
  }
  return most;
}

Decided Ask(const ForcedPolicies& policies, policy::Transfer transfer,
            const std::optional<policy::GrantFacts>& grant) {
  transfer.retention = policies.promise;
  transfer.subjects_exported = SubjectsOf(policies.effective, transfer.dataset);
  // The grant is the last of the policies that must agree.
  Decided decided{
      .decision = grant ? policy::Decide(policy::WithGrant(policies.effective, *grant), transfer)
                        : policy::Decide(policies.effective, transfer),
      .record = {}};
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
  own.site_text = site_text;
  own.statement = policy::StatementText(own.site);
  ASSIGN_OR_RETURN(own.federation_text, ReadFile(federation, kLargestPolicy));
  ASSIGN_OR_RETURN(own.federation, policy::ParsePolicy(own.federation_text, federation,
                                                       policy::PolicySource::kFederation));
  ASSIGN_OR_RETURN(own.facts_text, ReadFile(facts, kLargestPolicy));
  ASSIGN_OR_RETURN(own.facts, policy::ParseFacts(own.facts_text, facts));
  own.facts.digest = PrintHex(DigestOf(own.facts_text));
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
                        .promise = {},
                        .approver_keys = {}};
  RETURN_IF_ERROR(forced.effective.CheckSatisfiable());
  forced.promise = contracts::PromiseOf(aggregator);
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

Decided DecideEnrolment(const ForcedPolicies& policies, const contracts::RosterEntry& site,
                        const contracts::RosterEntry& aggregator,
                        const std::optional<std::chrono::milliseconds>& clock_skew, WallTime now) {
  policy::Transfer transfer;
  transfer.point = policy::DecisionPoint::kEnrolment;
  transfer.from = contracts::PartyOf(site);
  transfer.to = contracts::PartyOf(aggregator);
  transfer.clock_skew = clock_skew;
  transfer.now = now;
  return Ask(policies, std::move(transfer), std::nullopt);
}

Decided DecideOffer(const ForcedPolicies& policies, const contracts::Plan& plan,
                    const JobBorder& border, WallTime now) {
  return Ask(policies, Describe(policy::DecisionPoint::kOffer, plan, border, now), border.grant);
}

Decided DecideDataOpen(const ForcedPolicies& policies, const contracts::Plan& plan,
                       const JobBorder& border, WallTime now) {
  return Ask(policies, Describe(policy::DecisionPoint::kDataOpen, plan, border, now), border.grant);
}

Decided DecideEgress(const ForcedPolicies& policies, const contracts::Plan& plan,
                     const JobBorder& border, const UpdateFacts& update, WallTime now) {
  policy::Transfer transfer = Describe(policy::DecisionPoint::kEgress, plan, border, now);
  transfer.kinds = contracts::KindsOf(plan, update.phase);
  transfer.bytes = update.bytes;
  transfer.numbers = update.numbers;
  transfer.metrics = contracts::ScalarMetrics(update.phase);
  transfer.records_behind = update.records;
  return Ask(policies, std::move(transfer), border.grant);
}

}  // namespace domicile::site_agent
