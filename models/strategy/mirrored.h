// Synchronous data parallel training: each replica holds all parameters and takes its slice of the
// global batch; gradients are added up over replicas before every step: in rank order on
// the host, or by the devices where they can. The sum is
// taken at the end of the way back, not overlapped with it: on CPUs it needs the very cores that
// the way back computes on (docs/performance.md has its share).
#pragma once

#include <memory>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// One thread a replica. INVARIANT: after every step all replicas hold the same bits, since each
// applies the same operations to the same all-reduced gradient. Called by MakeStrategy, which has
// checked everything.
StatusOr<std::unique_ptr<Strategy>> MakeMirrored(const StrategySpec& strategy,
                                                 const TrainingSpec& training,
                                                 std::span<const float> initial);

}  // namespace domicile::models
