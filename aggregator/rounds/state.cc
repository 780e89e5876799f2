#include "aggregator/rounds/state.h"

namespace domicile::aggregator {

JobRules RulesFromPlan(const contracts::Plan& plan) {
  JobRules rules{.quorum = plan.rounds.quorum,
                 .max_sites = plan.update.max_sites,
                 .attempts = plan.rounds.attempts,
                 .deadline = plan.rounds.deadline,
                 .start_after = plan.rounds.start_after};
  for (RoundNumber round = 1; round <= plan.rounds.count; ++round) {
    rules.rounds.push_back(plan.Phases(round));
  }
  return rules;
}

std::string_view StageName(JobStage stage) {
  switch (stage) {
    case JobStage::kNone:
      return "none";
    case JobStage::kWaiting:
      return "waiting";
    case JobStage::kRunning:
      return "running";
    case JobStage::kDone:
      return "done";
    case JobStage::kFailed:
      return "failed";
    case JobStage::kCancelled:
      return "cancelled";
  }
  return "none";
}

std::optional<PhaseKey> NextPhase(const JobState& state) {
  if (state.rounds_committed >= state.rules.rounds.size()) {
    return std::nullopt;
  }
  return PhaseKey{.round = state.rounds_committed + 1,
                  .phase = state.rules.rounds[state.rounds_committed][state.phases_in_round]};
}

std::uint32_t CountOrganisations(const JobState& state, const std::vector<SiteId>& sites) {
  std::set<OrganisationId> organisations;
  for (const SiteId& site : sites) {
    organisations.insert(state.sites.at(site).organisation);
  }
  return static_cast<std::uint32_t>(organisations.size());
}

}  // namespace domicile::aggregator
