// Which sections an update of a phase holds, and the grid of each: derived from the plan alone, the
// same at both ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "contracts/plan.h"
#include "updates/grid.h"
#include "updates/statistics.h"
#include "updates/update.h"

namespace domicile::updates {

struct SectionSpec {
  SectionInfo info;
  GridPlan grid;
};

// In the order of the file. Errors: kInvalidArgument, a phase the plan does not have, or a grid
// that could overflow (a plan that was checked has neither).
StatusOr<std::vector<SectionSpec>> SectionsOf(const contracts::Plan& plan,
                                              contracts::PhaseKind phase);

// No update of this phase is longer; of a plan: of any of its phases. In bytes. Errors: as
// SectionsOf.
StatusOr<std::uint64_t> LargestUpdateBytes(const contracts::Plan& plan, contracts::PhaseKind phase);
StatusOr<std::uint64_t> LargestUpdateBytes(const contracts::Plan& plan);

StatisticsRules StatisticsRulesOf(const contracts::Plan& plan);

// The same list as CapacityBits takes it.
std::vector<SectionGrid> GridsOf(const std::vector<SectionSpec>& specs);

}  // namespace domicile::updates
