// The gradient in pieces that are added up over replicas one after the other, while the way back
// still makes the rest.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "models/layers/parameter.h"

namespace domicile::models {

// Part of a flat vector.
struct GradientRun {
  std::size_t offset = 0;
  std::size_t size = 0;

  friend bool operator==(const GradientRun&, const GradientRun&) = default;
};

struct Bucket {
  std::vector<GradientRun> runs;  // from the last to the first, at least one
  std::size_t size = 0;           // of all together

  // Final when the gradient is final from here on.
  std::size_t First() const { return runs.back().offset; }
};

// How many elements a bucket has at least, but for the one that is filled last: docs/performance.md
// says why so many.
inline constexpr std::size_t kBucketElements = std::size_t{1} << 16U;

// All that replicas must add up, cut from the end: trained tensors, and statistics, which come with
// the gradient. What is frozen has none. A bucket ends at the first tensor's beginning at which it
// has `elements`; a tensor becomes final all at once, so none is cut. Depends on the layout alone:
// all replicas have the same.
std::vector<Bucket> CutIntoBuckets(const ParameterLayout& layout,
                                   std::size_t elements = kBucketElements);

// The buckets of one step as they become final. Borrows them. One thread at a time.
class BucketQueue {
 public:
  explicit BucketQueue(std::span<const Bucket> buckets) : rest_(buckets) {}

  // The gradient is final from that entry on: calls take(bucket), in order, for each that has
  // become so.
  template <typename Take>
  void Advance(std::size_t entry, const Take& take) {
    while (!rest_.empty() && rest_.front().First() >= entry) {
      take(rest_.front());
      rest_ = rest_.subspan(1);
    }
  }

 private:
  std::span<const Bucket> rest_;
};

}  // namespace domicile::models
