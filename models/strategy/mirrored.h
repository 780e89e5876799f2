// Synchronous data parallel training: each replica holds all parameters and takes its slice of the
// global batch; gradients are added up over replicas in rank order before every step.
#pragma once

#include <memory>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// CPU replicas, one thread each. INVARIANT: after every step all replicas hold the same bits, since
// each applies the same operations to the same all-reduced gradient. Called by MakeStrategy.
std::unique_ptr<Strategy> MakeMirrored(const TrainingSpec& training, std::size_t replicas,
                                       std::span<const float> initial);

}  // namespace domicile::models
