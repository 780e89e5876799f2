// One replica a process, on several hosts: synchronous. A thread of its own adds up the gradient
// over the workers, bucket after bucket, while the way back goes on.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// Every worker is given the same global batches and works on its slice of each, so that the weights
// have the bits of `mirrored` with as many replicas. A batch that fits no worker fits none: all see
// the same. After an error of the group the strategy must not be used again; the group must outlive
// it. The training spec has passed MakeStrategy's checks. Errors: kInvalidArgument (no group),
// those of making the device.
StatusOr<std::unique_ptr<Strategy>> MakeMultiWorker(const StrategySpec& strategy,
                                                    const TrainingSpec& training,
                                                    std::span<const float> initial);

}  // namespace domicile::models
