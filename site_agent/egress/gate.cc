#include "site_agent/egress/gate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"

namespace domicile::site_agent {

namespace {

Digest DigestOf(std::string_view text) { return crypto::Sha256(AsBytes(text)); }

policy::Transfer Describe(policy::DecisionPoint point, const contracts::Plan& plan,
                          const JobBorder& border, WallTime now) {
  policy::Transfer transfer =
      contracts::TransferOf(point, plan, border.site, border.aggregator, border.roster, now);
  transfer.kinds = contracts::AllKindsOf(plan);
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
  return transfer;
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
    const auto of_one = policy::MostOf(clause.value.subjects_count);
    most = most && of_one ? std::optional(std::max(*most, *of_one)) : std::nullopt;
  }
  return most;
}

Decided Ask(const ForcedPolicies& policies, policy::Transfer transfer,
            const std::optional<policy::GrantFacts>& grant) {
  transfer.retention = policies.promise;
  transfer.subjects_exported = SubjectsOf(policies.effective, transfer.dataset);
  if (grant) {  // the last of the policies that must agree
    return audit::Decide(policy::WithGrant(policies.effective, *grant), policies.digests, transfer);
  }
  return audit::Decide(policies.effective, policies.digests, transfer);
}

}  // namespace

StatusOr<ForcedPolicies> MeetOnConnect(const OwnPolicies& own, std::string_view federation_text,
                                       std::string_view aggregator_text,
                                       std::string_view facts_text) {
  const auto differs = [](std::string_view what) {
    // A version that waits may be in force at one end before it is at the other.
    return Error(StatusCode::kUnavailable,
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
  policy::Transfer transfer = contracts::EnrolmentOf(site, aggregator, now);
  transfer.clock_skew = clock_skew;
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

std::uint64_t MicroEpsilon(double epsilon) {
  // What a leaf can say. Where so much adds up to more than 63 bits, the sum is an error: denied.
  constexpr double kMost = 9e15;
  const double micro = std::ceil(epsilon * 1e6);
  return static_cast<std::uint64_t>(micro >= 0 && micro <= kMost ? micro : kMost);
}

}  // namespace domicile::site_agent
