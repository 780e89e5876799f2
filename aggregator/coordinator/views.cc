// Views: what a person sees of the numbers that came from sites.
#include <set>
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "audit/records.h"
#include "contracts/plan_facts.h"

namespace domicile::aggregator {

// Every contributor's word on sums of its metrics being shown to a person.
std::pair<policy::Reason, audit::DecisionRecord> Coordinator::DecideViewOf(
    const Job& job, const policy::Party& person) {
  const auto deny = [this](policy::Reason reason) {
    return std::pair(reason, audit::DecisionRecord{.result = "deny",
                                                   .reasons = {std::string(policy::Code(reason))},
                                                   .rules = {},
                                                   .policies = own_policies_});
  };
  std::set<std::string> rules;
  for (const SiteId& contributor : job.contributors) {
    const auto known = known_.find(contributor);
    if (known == known_.end()) {
      return deny(policy::Reason::kNotInRoster);  // its word cannot be had any more
    }
    Decided decided = DecideView(known->second.policy, *job.plan, BorderOf(known->second), person,
                                 job.last_contributors, clock_.Now());
    if (!decided.Allowed()) {
      return {decided.decision.Why(), std::move(decided.record)};
    }
    rules.insert(decided.record.rules.begin(), decided.record.rules.end());
  }
  return {policy::Reason::kNone,
          {.result = "allow",
           .reasons = {std::string(policy::Code(policy::Reason::kPermitted))},
           .rules = {rules.begin(), rules.end()},
           .policies = own_policies_}};
}

Status Coordinator::DecideMetrics(std::string_view operator_name, Job& job, JobView& view) {
  if (view.metrics.empty()) {
    return OkStatus();
  }
  const policy::Party person = contracts::OperatorParty(operator_name, identity_.entry);
  const auto [reason, record] = DecideViewOf(job, person);
  const std::pair<std::size_t, policy::Reason> now(view.metrics.size(), reason);
  std::pair<std::size_t, policy::Reason>& logged = job.viewed[std::string(operator_name)];
  if (logged != now) {
    const audit::PartyPlace from{.party = "aggregator/" + identity_.entry.name,
                                 .jurisdiction = identity_.entry.jurisdiction};
    const audit::PartyPlace to{.party = "operator/" + std::string(operator_name),
                               .jurisdiction = person.jurisdiction};
    const bool allowed = reason == policy::Reason::kNone;
    RETURN_IF_ERROR(AppendLeaf(audit::EventBuilder(allowed ? audit::EventType::kViewAllowed
                                                           : audit::EventType::kViewDenied)
                                   .Set("job", job.id)
                                   .Set("round", view.metrics.back().key.round)
                                   .Set("kind", "metrics.aggregate")
                                   .Set("from", ToJson(from))
                                   .Set("to", ToJson(to))
                                   .Set("decision", ToJson(record))
                                   .Build()));
    logged = now;
  }
  if (reason != policy::Reason::kNone) {
    view.metrics.clear();
    view.metrics_withheld = reason;
  }
  return OkStatus();
}

}  // namespace domicile::aggregator
