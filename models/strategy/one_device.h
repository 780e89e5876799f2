// Training on one device.
#pragma once

#include <memory>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// `initial` must have the network's size. Called by MakeStrategy.
std::unique_ptr<Strategy> MakeOneDevice(const TrainingSpec& training, std::size_t threads,
                                        std::span<const float> initial);

}  // namespace domicile::models
