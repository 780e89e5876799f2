// Federated averaging (McMahan et al. 2017): from the exact sum to the next model.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "updates/grid.h"

namespace domicile::updates {

// next[p] = float32(old[p] + learning_rate * ((sum[p] / total_weight) * 2^-scale_bits))
//
//   old            [P] the weights every contributor started from, finite
//   sum            [P] levels: sum of weight * delta over the contributors
//   total_weight   sum of the contributors' weights: of those that answered, never of those planned
//   learning_rate  of the server, finite, > 0; 1 gives the weighted mean of the models
//   next           [P] may be `old` itself
//
// One fixed sequence of IEEE 754 double operations per element, in the order of the formula, one
// rounding each, no contraction: the same bits on every machine. O(P). Reentrant: ranges may be
// computed on several threads.
// Errors:
//   kInvalidArgument     shapes differ, the rate is not finite and positive; `next` untouched
//   kFailedPrecondition  total_weight is 0: there is no mean of nothing; `next` untouched
//   kOutOfRange          a result that is not finite, naming the first index; `next` is then no
//   model
//                        and must not be stored
Status FedAvg(const GridPlan& plan, std::span<const float> old, std::span<const std::int64_t> sum,
              std::int64_t total_weight, double learning_rate, std::span<float> next);

}  // namespace domicile::updates
