// The grid of a round: which numbers an update may hold, and why their weighted sum cannot
// overflow.
//
// A *level* is an integer; it stands for level * 2^-scale_bits. Everything a site sends is levels,
// in one encoding or another, so that the aggregator adds integers and gets the same bits whatever
// the order, the split, the threads or the machine. The limits come from the plan, never from data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace domicile::updates {

// Largest product max_sites * max_weight * max_level, exclusive.
inline constexpr std::int64_t kSumLimit = std::int64_t{1} << 62U;
// Largest level that float32 sections may have: |level| < 2^51 is what the kernels' conversion
// needs.
inline constexpr std::int64_t kLargestFloatLevel = std::int64_t{1} << 50U;
// Largest scale_bits: 2^-120 keeps every level a normal float32.
inline constexpr std::uint32_t kLargestScaleBits = 120;

// The public limits of one section. A value of this type is proof that they were checked: any sum
// of at most max_sites terms weight * level with 0 <= weight <= max_weight and |level| <= max_level
// stays below 2^62 in absolute value. Immutable.
class GridPlan {
 public:
  // Errors: kInvalidArgument, naming the limit: each at least 1 (scale_bits 0 ..
  // kLargestScaleBits), and max_sites * max_weight * max_level < 2^62.
  static StatusOr<GridPlan> Create(std::uint32_t scale_bits, std::int64_t max_level,
                                   std::int64_t max_weight, std::int64_t max_sites);

  // The grid of a delta whose L2 norm is clipped to `clip_l2` (finite, > 0), which bounds each of
  // its values too: max_level = ceil(clip_l2 * 2^scale_bits), at most kLargestFloatLevel. Errors:
  // as Create.
  static StatusOr<GridPlan> ForClip(double clip_l2, std::uint32_t scale_bits,
                                    std::int64_t max_weight, std::int64_t max_sites);

  std::uint32_t ScaleBits() const { return scale_bits_; }
  std::int64_t MaxLevel() const { return max_level_; }
  std::int64_t MaxWeight() const { return max_weight_; }
  std::int64_t MaxSites() const { return max_sites_; }

  // Bits that one number of this grid can carry: those of its 2 * max_level + 1 levels, rounded up.
  std::uint32_t BitsPerNumber() const;
  // 2^scale_bits and 2^-scale_bits, exact.
  double Scale() const;
  double Step() const;

  friend bool operator==(const GridPlan&, const GridPlan&) = default;

 private:
  GridPlan(std::uint32_t scale_bits, std::int64_t max_level, std::int64_t max_weight,
           std::int64_t max_sites)
      : scale_bits_(scale_bits),
        max_level_(max_level),
        max_weight_(max_weight),
        max_sites_(max_sites) {}

  std::uint32_t scale_bits_;
  std::int64_t max_level_;
  std::int64_t max_weight_;
  std::int64_t max_sites_;
};

// Rounds in place to the nearest level, ties to even, and saturates at max_level; the result is
// still float32, since a float32 rounded to a power-of-two grid is a float32 again: either its last
// bit is worth at least one level, and it is on the grid, or it is below 2^24 levels, and every
// level there is exact. The saturation value is max_level cut to 24 significant bits. Never gives
// -0. O(P). Errors, `values` untouched: kInvalidArgument, a value that is not finite, naming the
// index of the first; or a grid with max_level > kLargestFloatLevel.
Status RoundToGrid(const GridPlan& plan, std::span<float> values);

// The same from double to levels, for statistics and metrics; any max_level. Errors:
// kInvalidArgument, as above; `levels` has the length of `values`.
Status RoundToLevels(const GridPlan& plan, std::span<const double> values,
                     std::span<std::int64_t> levels);

}  // namespace domicile::updates
