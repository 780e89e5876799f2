// What the kernels share: unaligned loads, the conversion trick, the sum of squares of a block.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"

namespace domicile::updates::internal {

static_assert(std::endian::native == std::endian::little, "updates are little-endian in memory");

// 1.5 * 2^52. For a double |v| < 2^51 with no fraction, the low 52 bits of v + kMagic are v in
// two's complement plus a constant; for one with a fraction, the addition rounds it to nearest,
// ties to even. Unlike llrint, this is plain arithmetic that every compiler vectorises.
inline constexpr double kMagic = 6755399441055744.0;
inline constexpr auto kMagicBits = std::bit_cast<std::uint64_t>(kMagic);

// Sections lie in network buffers: no alignment can be assumed. Compiles to one load.
inline float LoadFloat(const std::uint8_t* at) {
  float value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Sum of squares of at most kNormBlock floats, in 16 fixed lanes. Finite exactly if all of them
// are: a squared float32 is at most 2^256, and 65536 of them are far from the end of a double.
double SquaresOfBlock(const std::uint8_t* floats, std::size_t count);

// The norm over all blocks; empty if a value is not finite.
std::optional<double> NormOf(const std::uint8_t* floats, std::size_t count);

// The first value that is not finite; `count` if all are.
std::size_t FirstNotFinite(const std::uint8_t* floats, std::size_t count);

}  // namespace domicile::updates::internal
