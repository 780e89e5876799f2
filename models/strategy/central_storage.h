// Synchronous training with one copy of parameters and optimizer state on the host: replicas only
// compute gradients. Less memory than mirrored replicas, more traffic where devices have their own.
#pragma once

#include <memory>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// The parameters have the bits of mirrored training with as many replicas. Called by MakeStrategy,
// which has checked everything.
StatusOr<std::unique_ptr<Strategy>> MakeCentralStorage(const StrategySpec& strategy,
                                                       const TrainingSpec& training,
                                                       std::span<const float> initial);

}  // namespace domicile::models
