#include "aggregator/coordinator/gate.h"

#include <set>
#include <string_view>
#include <utility>

#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "policy/language/statement.h"

namespace domicile::aggregator {

namespace {

Digest DigestOf(std::string_view text) { return crypto::Sha256(AsBytes(text)); }

policy::Transfer Describe(policy::DecisionPoint point, const contracts::Plan& plan,
                          const Border& border, WallTime now) {
  policy::Transfer transfer =
      contracts::TransferOf(point, plan, border.site, border.aggregator, border.roster, now);
  transfer.clock_skew = border.clock_skew;
  return transfer;
}

void SetContributors(const Contributors& contributors, policy::Transfer& transfer) {
  std::set<std::string_view> organisations;
  for (const policy::Contributor& contributor : contributors) {
    organisations.insert(contributor.organisation);
  }
  transfer.contributors = static_cast<std::uint32_t>(organisations.size());
  transfer.contributor_sites = contributors;
}

Decided Ask(const SitePolicy& policy, policy::Transfer transfer) {
  transfer.retention = policy.promise;
  return audit::Decide(policy.effective, policy.digests, transfer);
}

}  // namespace

audit::PolicyDigests OwnDigests(const OwnPolicies& own) {
  const policy::Effective effective = policy::Meet(policy::FromPolicy(own.federation, own.facts),
                                                   policy::FromPolicy(own.aggregator, own.facts));
  return {.effective = DigestOf(effective.Text()),
          .federation = DigestOf(own.federation_text),
          .aggregator = DigestOf(own.aggregator_text),
          .site = {},
          .facts = DigestOf(own.facts_text)};
}

StatusOr<SitePolicy> MeetStatement(const OwnPolicies& own, std::string_view statement,
                                   const contracts::RosterEntry& site) {
  ASSIGN_OR_RETURN(const policy::Policy parsed, policy::ParseStatement(statement));
  if (!parsed.site || parsed.site->jurisdiction.text() != site.jurisdiction) {
    return Error(StatusCode::kPermissionDenied,
                 "the policy statement of `" + site.name +
                     "` is for another jurisdiction than the roster's `" + site.jurisdiction + "`");
  }
  SitePolicy policy{.effective = policy::Meet(own.federation, own.aggregator, parsed, own.facts),
                    .digests = {},
                    .promise = contracts::PromiseOf(own.aggregator)};
  policy.digests = {.effective = DigestOf(policy.effective.Text()),
                    .federation = DigestOf(own.federation_text),
                    .aggregator = DigestOf(own.aggregator_text),
                    .site = DigestOf(statement),
                    .facts = DigestOf(own.facts_text)};
  return policy;
}

Decided DecideEnrolment(const SitePolicy& policy, const Border& border, WallTime now) {
  policy::Transfer transfer = contracts::EnrolmentOf(border.site, border.aggregator, now);
  transfer.clock_skew = border.clock_skew;
  return Ask(policy, std::move(transfer));
}

Decided DecideIngress(const SitePolicy& policy, const contracts::Plan& plan,
                      contracts::PhaseKind phase, const Border& border, std::uint64_t bytes,
                      std::uint64_t numbers, WallTime now) {
  policy::Transfer transfer = Describe(policy::DecisionPoint::kIngress, plan, border, now);
  transfer.kinds = contracts::KindsOf(plan, phase);
  transfer.bytes = bytes;
  transfer.numbers = numbers;
  transfer.metrics = contracts::ScalarMetrics(phase);
  return Ask(policy, std::move(transfer));
}

Decided DecideRelease(const SitePolicy& policy, const contracts::Plan& plan, const Border& border,
                      const Contributors& contributors, WallTime now) {
  policy::Transfer transfer = Describe(policy::DecisionPoint::kAggregateRelease, plan, border, now);
  transfer.kinds = {policy::UpdateKind::kModelFinal};
  SetContributors(contributors, transfer);
  return Ask(policy, std::move(transfer));
}

Decided DecideModelTo(const SitePolicy& policy, const contracts::Plan& plan, const Border& border,
                      const policy::Party& recipient, const Contributors& contributors,
                      WallTime now) {
  const bool to_site = recipient.role == policy::PartyRole::kSite;
  policy::Transfer transfer = Describe(
      to_site ? policy::DecisionPoint::kModelToSite : policy::DecisionPoint::kModelDownload, plan,
      border, now);
  transfer.via = transfer.to;
  transfer.to = recipient;
  transfer.kinds = {policy::UpdateKind::kModelFinal};
  SetContributors(contributors, transfer);
  return Ask(policy, std::move(transfer));
}

Decided DecideView(const SitePolicy& policy, const contracts::Plan& plan, const Border& border,
                   const policy::Party& person, const Contributors& contributors, WallTime now) {
  policy::Transfer transfer = Describe(policy::DecisionPoint::kView, plan, border, now);
  transfer.via = transfer.to;
  transfer.to = person;
  transfer.kinds = {policy::UpdateKind::kMetricsAggregate};
  // Whatever the aggregator itself can see: what is shown is a sum over the contributors.
  transfer.view = policy::View::kAggregateOnly;
  SetContributors(contributors, transfer);
  return Ask(policy, std::move(transfer));
}

}  // namespace domicile::aggregator
