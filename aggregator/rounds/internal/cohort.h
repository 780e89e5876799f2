// Who takes part in a phase, and how many organisations it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregator/rounds/state.h"

namespace domicile::aggregator::internal {

struct Cohort {
  std::vector<SiteId> sites = {};     // sorted
  std::uint32_t floor = 0;            // of organisations; at most what `sites` have
  std::vector<SiteId> surplus = {};   // candidates beyond max_sites
  std::vector<SiteId> left_out = {};  // candidates whose own minimum cannot be met
};

// The largest cohort of these candidates that can reach its own floor; empty if there is none.
std::optional<Cohort> MakeCohort(const JobState& state, std::vector<SiteId> candidates);

// Sites that are connected and have accepted.
std::vector<SiteId> ConnectedAccepted(const JobState& state);

// Who may take part in the next attempt at `phase`: the round's cohort as far as it still accepts,
// once the round has committed something or statistics have come in, else whoever is connected.
std::vector<SiteId> Candidates(const JobState& state, PhaseKind phase);

}  // namespace domicile::aggregator::internal
