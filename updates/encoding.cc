#include "updates/encoding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "updates/clip.h"
#include "updates/internal/kernel.h"

namespace domicile::updates {
namespace {

constexpr std::uint32_t kNegativeZero = 0x80000000U;

std::uint32_t LoadBits(const std::uint8_t* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

// Whether all of a block are whole levels within the limit, and none is -0. No branches, so that it
// vectorises: distances from the grid are added up (a NaN or an infinity makes that NaN), greatest
// absolute levels are kept, all in fixed lanes.
bool BlockIsOnGrid(const std::uint8_t* floats, std::size_t count, double scale, double max_level) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> off_grid{};
  std::array<double, kLanes> largest{};
  std::array<std::uint32_t, kLanes> negative_zeros{};
  std::size_t i = 0;
  const auto look = [&](std::size_t index, std::size_t lane) {
    const std::uint8_t* const at = floats + index * sizeof(float);
    const double level = static_cast<double>(internal::LoadFloat(at)) * scale;
    const double rounded = (level + internal::kMagic) - internal::kMagic;
    const double magnitude = std::fabs(level);
    off_grid[lane] += std::fabs(rounded - level);
    largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
    negative_zeros[lane] += static_cast<std::uint32_t>(LoadBits(at) == kNegativeZero);
  };
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      look(i + lane, lane);
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    look(i, lane);
  }
  bool good = true;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    // Written so that NaN is not good.
    good = good && off_grid[lane] == 0 && largest[lane] <= max_level && negative_zeros[lane] == 0;
  }
  return good;
}

// Says what is wrong with a section that has a bad number at or after `first`.
Status DescribeBad(const GridPlan& plan, const std::uint8_t* floats, std::size_t first,
                   std::size_t count) {
  for (std::size_t i = first; i < count; ++i) {
    const std::uint8_t* const at = floats + i * sizeof(float);
    const double level = static_cast<double>(internal::LoadFloat(at)) * plan.Scale();
    const std::string name = "number " + std::to_string(i);
    if (!std::isfinite(level)) {
      return Error(StatusCode::kInvalidArgument, name + " is not finite");
    }
    if (std::fabs(level) > static_cast<double>(plan.MaxLevel())) {
      return Error(StatusCode::kOutOfRange, name + " is beyond the grid's largest level");
    }
    if (level != std::nearbyint(level)) {
      return Error(StatusCode::kInvalidArgument, name + " is not on the grid");
    }
    if (LoadBits(at) == kNegativeZero) {
      return Error(StatusCode::kInvalidArgument, name + " is -0, which the grid does not have");
    }
  }
  return Error(StatusCode::kInternal, "a section was refused without a bad number");
}

}  // namespace

std::string_view EncodingName(Encoding encoding) {
  switch (encoding) {
    case Encoding::kNone:
      return "";
    case Encoding::kF32:
      return "f32";
    case Encoding::kI64:
      return "i64";
  }
  return "";
}

std::optional<Encoding> EncodingFromName(std::string_view name) {
  for (const Encoding encoding : {Encoding::kF32, Encoding::kI64}) {
    if (EncodingName(encoding) == name) {
      return encoding;
    }
  }
  return std::nullopt;
}

std::size_t EncodedSize(Encoding encoding) {
  switch (encoding) {
    case Encoding::kNone:
      return 0;
    case Encoding::kF32:
      return sizeof(float);
    case Encoding::kI64:
      return sizeof(std::int64_t);
  }
  return 0;
}

StatusOr<GridFloats> GridFloats::Check(const GridPlan& plan, ByteSpan bytes) {
  if (bytes.size() % sizeof(float) != 0) {
    return Error(StatusCode::kInvalidArgument,
                 "an f32 section has 4 bytes a number, found " + std::to_string(bytes.size()));
  }
  if (plan.MaxLevel() > kLargestFloatLevel) {
    return Error(StatusCode::kInvalidArgument, "a grid of floats needs max_level at most 2^50");
  }
  const std::size_t count = bytes.size() / sizeof(float);
  const double scale = plan.Scale();
  double squares = 0;
  for (std::size_t first = 0; first < count; first += kNormBlock) {
    const std::uint8_t* const block = bytes.data() + first * sizeof(float);
    const std::size_t length = std::min(kNormBlock, count - first);
    // Both passes over a block while it is in the cache.
    if (!BlockIsOnGrid(block, length, scale, static_cast<double>(plan.MaxLevel()))) {
      return DescribeBad(plan, bytes.data(), first, count);
    }
    squares += internal::SquaresOfBlock(block, length);
  }
  return GridFloats(plan, bytes, std::sqrt(squares));
}

GridFloats GridFloats::Slice(std::size_t first, std::size_t count) const {
  DOMICILE_CHECK(first <= Count() && count <= Count() - first);
  return {plan_, bytes_.subspan(first * sizeof(float), count * sizeof(float)), norm_};
}

StatusOr<std::vector<std::int64_t>> DecodeLevels(const GridPlan& plan, Encoding encoding,
                                                 ByteSpan bytes) {
  std::vector<std::int64_t> levels;
  switch (encoding) {
    case Encoding::kNone:
      break;
    case Encoding::kF32: {
      ASSIGN_OR_RETURN(const GridFloats floats, GridFloats::Check(plan, bytes));
      levels.resize(floats.Count());
      for (std::size_t i = 0; i < levels.size(); ++i) {
        const float value = internal::LoadFloat(bytes.data() + i * sizeof(float));
        levels[i] = static_cast<std::int64_t>(static_cast<double>(value) * plan.Scale());
      }
      return levels;
    }
    case Encoding::kI64:
      if (bytes.size() % sizeof(std::int64_t) != 0) {
        return Error(StatusCode::kInvalidArgument,
                     "an i64 section has 8 bytes a number, found " + std::to_string(bytes.size()));
      }
      levels.resize(bytes.size() / sizeof(std::int64_t));
      for (std::size_t i = 0; i < levels.size(); ++i) {
        levels[i] = static_cast<std::int64_t>(ReadU64(bytes.subspan(i * sizeof(std::int64_t))));
        // Not abs(): the least integer has none.
        if (levels[i] > plan.MaxLevel() || levels[i] < -plan.MaxLevel()) {
          return Error(StatusCode::kOutOfRange,
                       "number " + std::to_string(i) + " is beyond the grid's largest level");
        }
      }
      return levels;
  }
  return Error(StatusCode::kInvalidArgument, "an encoding that this version cannot decode");
}

Bytes EncodeF32(std::span<const float> values) {
  Bytes bytes(values.size_bytes());
  if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

Bytes EncodeI64(std::span<const std::int64_t> levels) {
  Bytes bytes;
  bytes.reserve(levels.size_bytes());
  for (const std::int64_t level : levels) {
    AppendU64(bytes, static_cast<std::uint64_t>(level));
  }
  return bytes;
}

}  // namespace domicile::updates
