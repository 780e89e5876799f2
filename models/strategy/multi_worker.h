// One replica a process, on several hosts: synchronous, with an all-reduce before each step.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "models/strategy/strategy.h"
#include "models/strategy/worker_group.h"

namespace domicile::models {

// Every worker is given the same global batches and works on its slice of each, so that the weights
// have the bits of `mirrored` with as many replicas. A batch that fits no worker fits none: all see
// the same. After an error of the group the strategy must not be used again. The group must outlive
// it; the training spec has passed MakeStrategy's checks.
std::unique_ptr<Strategy> MakeMultiWorker(const TrainingSpec& training, std::size_t threads,
                                          WorkerGroup& group, std::span<const float> initial);

}  // namespace domicile::models
