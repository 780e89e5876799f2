// How a global batch is cut up over replicas, and how a replica's time is told apart.
#pragma once

#include <cstddef>
#include <vector>

#include "models/strategy/strategy.h"

namespace domicile::models {

struct Slice {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Of that rank; sizes differ by one at most, and may be 0.
inline Slice SliceOf(std::size_t rank, std::size_t num_ranks, std::size_t examples) {
  const std::size_t first = rank * examples / num_ranks;
  return {first, (rank + 1) * examples / num_ranks - first};
}

// Adds the time since the last mark to one of a report's sums. One thread at a time.
class StepTimer {
 public:
  explicit StepTimer(const Clock& clock) : clock_(clock), last_(clock.Monotonic()) {}

  void MarkInto(std::chrono::nanoseconds& sum) {
    const MonotonicTime now = clock_.Monotonic();
    sum += now - last_;
    last_ = now;
  }

 private:
  const Clock& clock_;
  MonotonicTime last_;
};

}  // namespace domicile::models
