#include "aggregator/rounds/internal/cohort.h"

#include <algorithm>
#include <set>
#include <utility>

namespace domicile::aggregator::internal {
namespace {

// Takes out what is beyond max_sites: the sum has no room for it. One site of each organisation
// comes before any second one, since floors count organisations; then the names decide.
void CutSurplus(const JobState& state, Cohort& cohort) {
  if (cohort.sites.size() <= state.rules.max_sites) {
    return;
  }
  std::set<OrganisationId> organisations;
  std::stable_partition(cohort.sites.begin(), cohort.sites.end(), [&](const SiteId& site) {
    return organisations.insert(state.sites.at(site).organisation).second;
  });
  const auto end = cohort.sites.begin() + static_cast<std::ptrdiff_t>(state.rules.max_sites);
  cohort.surplus.assign(end, cohort.sites.end());
  cohort.sites.erase(end, cohort.sites.end());
  std::sort(cohort.sites.begin(), cohort.sites.end());
}

}  // namespace

std::optional<Cohort> MakeCohort(const JobState& state, std::vector<SiteId> candidates) {
  Cohort cohort{.sites = std::move(candidates)};
  CutSurplus(state, cohort);
  const auto minimum = [&](const SiteId& site) { return state.sites.at(site).min_contributors; };
  while (!cohort.sites.empty()) {
    std::uint32_t largest = 0;
    for (const SiteId& site : cohort.sites) {
      largest = std::max(largest, minimum(site));
    }
    cohort.floor = std::max({state.rules.quorum, largest, 1U});
    if (CountOrganisations(state, cohort.sites) >= cohort.floor) {
      return cohort;
    }
    if (largest <= state.rules.quorum) {
      return std::nullopt;  // it is the quorum that is missing: leaving sites out cannot help
    }
    const auto demanding =
        std::stable_partition(cohort.sites.begin(), cohort.sites.end(),
                              [&](const SiteId& site) { return minimum(site) < largest; });
    cohort.left_out.insert(cohort.left_out.end(), demanding, cohort.sites.end());
    cohort.sites.erase(demanding, cohort.sites.end());
  }
  return std::nullopt;
}

std::vector<SiteId> ConnectedAccepted(const JobState& state) {
  std::vector<SiteId> sites;
  for (const auto& [site, record] : state.sites) {
    if (record.connected && record.answer == Answer::kAccept) {
      sites.push_back(site);
    }
  }
  return sites;
}

std::vector<SiteId> Candidates(const JobState& state, PhaseKind phase) {
  const bool is_fixed = state.phases_in_round > 0 ||
                        (phase == PhaseKind::kStatistics && !state.known_digests.empty());
  if (!is_fixed) {
    return ConnectedAccepted(state);
  }
  std::vector<SiteId> sites;
  std::copy_if(state.cohort.begin(), state.cohort.end(), std::back_inserter(sites),
               [&](const SiteId& site) { return state.sites.at(site).answer == Answer::kAccept; });
  return sites;
}

}  // namespace domicile::aggregator::internal
