// Workers of one training run in several processes, seen from one of them: what they do together.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"

namespace domicile::models {

// Every rank calls the same operations in the same order, with buffers of one size. Errors:
// kUnavailable, naming the worker that is gone or silent; the group is unusable then. One thread at
// a time, not always the same one.
class WorkerGroup {
 public:
  virtual ~WorkerGroup() = default;
  virtual std::size_t NumRanks() const = 0;
  virtual std::size_t Rank() const = 0;
  // Afterwards all hold the same bits: the element-wise sum in rank order, in float64, rounded
  // once.
  virtual Status AllReduceSum(std::span<float> values) = 0;
  virtual StatusOr<double> AllReduceSum(double value) = 0;
};

}  // namespace domicile::models
