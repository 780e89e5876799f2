// How many threads an input pipeline uses and how much it holds ready, from what was measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace domicile::models {

struct PipelineTuning {
  std::size_t threads = 1;  // that make elements
  std::size_t depth = 2;    // elements made or being made, and not yet taken

  friend bool operator==(const PipelineTuning&, const PipelineTuning&) = default;
};

// Of one stretch of time.
struct PipelineMeasure {
  std::chrono::nanoseconds elapsed{0};  // of the consumer, from end to end
  std::chrono::nanoseconds waited{0};   // of it, for input
  std::uint64_t taken = 0;              // elements
  std::chrono::nanoseconds making{0};   // of all threads together
  std::uint64_t made = 0;
  std::uint64_t largest_bytes = 0;  // the largest element made so far
};

struct PipelineLimits {
  std::size_t max_threads = 1;  // at least 1
  std::size_t max_depth = 64;   // at least 1
  std::uint64_t memory_bytes = std::uint64_t{256} << 20U;
};

// Threads: as many as make elements a tenth faster than the consumer takes them, and one fewer at
// most in one step down. Depth: doubled where the consumer waited more than a hundredth of its
// time, else kept, never below the number of threads. Both as far as the limits allow: depth times
// the largest element is within the memory, except that one element is always allowed. Nothing
// measured, nothing changed. Pure.
PipelineTuning Tune(const PipelineTuning& now, const PipelineMeasure& measure,
                    const PipelineLimits& limits);

}  // namespace domicile::models
