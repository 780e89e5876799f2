// L2 norm and clipping of a delta, as numbers that come out the same on any machine.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace domicile::updates {

// Elements per block of the norm: each block is summed in 16 fixed lanes, the lanes by a fixed
// tree, the blocks in order. So the norm is one number, whatever the vector width or the threads.
inline constexpr std::size_t kNormBlock = 65536;

// The L2 norm in double. It cannot overflow: a squared float32 is at most 2^256. Errors:
// kInvalidArgument, a value that is not finite, naming the index of the first. O(P). Reentrant.
StatusOr<double> L2Norm(std::span<const float> values);

// Scales in place so that the norm is at most `bound` (finite, > 0), and leaves the values exactly
// as they are when it is not above. Returns the norm before. Each value is multiplied in double by
// bound / norm and rounded once to float32. Errors, `values` untouched: as L2Norm; kInvalidArgument
// for the bound.
StatusOr<double> ClipL2(double bound, std::span<float> values);

// The largest norm that an honest update can have once clipped to `clip_l2` and rounded onto the
// grid: clip_l2 + sqrt(count) * 2^-(scale_bits + 1), with a margin of 2^-20 of it for the rounding
// of the scaling itself. What an aggregator refuses beyond.
double LargestNormOnGrid(double clip_l2, std::uint64_t count, std::uint32_t scale_bits);

}  // namespace domicile::updates
