// How work is cut: from shapes alone, so that the same shapes give the same bits. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "models/layers/shapes.h"

namespace domicile::models::cuda {

constexpr std::size_t kBlock = 256;            // threads of a block, and of the largest team
constexpr std::size_t kMaxBlocks = 1U << 20U;  // of a grid; what is left over is looped for
constexpr std::size_t kRowsPerStretch = 128;   // of sums over rows
constexpr std::size_t kPerStretch = 16384;     // of sums over a vector

inline std::size_t Pieces(std::size_t size, std::size_t per_piece) {
  return (size + per_piece - 1) / per_piece;
}

// Blocks for `size` elements, at least one.
inline std::size_t BlocksFor(std::size_t size) {
  return std::clamp<std::size_t>(Pieces(size, kBlock), 1, kMaxBlocks);
}

// Threads that share a sum over `size` elements: a power of two from a warp to a block, with about
// four elements each.
inline std::size_t TeamSize(std::size_t size) {
  std::size_t team = 32;
  while (team < kBlock && team * 4 < size) {
    team *= 2;
  }
  return team;
}

// Images whose columns are made at once in `room` floats, at least one.
inline std::size_t ImagesAtOnce(const ConvShape& shape, std::size_t images, std::size_t room) {
  const std::size_t each = shape.patch * shape.out_height * shape.out_width;
  return std::clamp<std::size_t>(room / std::max<std::size_t>(each, 1), 1,
                                 std::max<std::size_t>(images, 1));
}

}  // namespace domicile::models::cuda
