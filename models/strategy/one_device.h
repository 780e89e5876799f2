// Training on one device.
#pragma once

#include <memory>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// Called by MakeStrategy, which has checked everything.
StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(const StrategySpec& strategy,
                                                  const TrainingSpec& training,
                                                  std::span<const float> initial);

}  // namespace domicile::models
