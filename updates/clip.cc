#include "updates/clip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "updates/internal/kernel.h"

namespace domicile::updates {
namespace internal {
namespace {

constexpr std::size_t kLanes = 16;

}  // namespace

double SquaresOfBlock(const std::uint8_t* floats, std::size_t count) {
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(LoadFloat(floats + (i + lane) * sizeof(float)));
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const auto value = static_cast<double>(LoadFloat(floats + i * sizeof(float)));
    lanes[lane] += value * value;
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      lanes[lane] += lanes[lane + width];
    }
  }
  return lanes[0];
}

std::optional<double> NormOf(const std::uint8_t* floats, std::size_t count) {
  double squares = 0;
  for (std::size_t first = 0; first < count; first += kNormBlock) {
    squares += SquaresOfBlock(floats + first * sizeof(float), std::min(kNormBlock, count - first));
  }
  if (!std::isfinite(squares)) {
    return std::nullopt;
  }
  return std::sqrt(squares);
}

std::size_t FirstNotFinite(const std::uint8_t* floats, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(LoadFloat(floats + i * sizeof(float)))) {
      return i;
    }
  }
  return count;
}

}  // namespace internal

StatusOr<double> L2Norm(std::span<const float> values) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  const std::optional<double> norm = internal::NormOf(bytes, values.size());
  if (!norm) {
    return Error(StatusCode::kInvalidArgument,
                 "value " + std::to_string(internal::FirstNotFinite(bytes, values.size())) +
                     " is not finite");
  }
  return *norm;
}

StatusOr<double> ClipL2(double bound, std::span<float> values) {
  if (!std::isfinite(bound) || bound <= 0) {
    return Error(StatusCode::kInvalidArgument, "the clip bound must be finite and above 0");
  }
  ASSIGN_OR_RETURN(const double norm, L2Norm(values));
  if (norm > bound) {
    const double factor = bound / norm;
    for (float& value : values) {
      value = static_cast<float>(static_cast<double>(value) * factor);
    }
  }
  return norm;
}

double LargestNormOnGrid(double clip_l2, std::uint64_t count, std::uint32_t scale_bits) {
  const double half_step = std::ldexp(0.5, -static_cast<int>(scale_bits));
  const double rounding = std::sqrt(static_cast<double>(count)) * half_step;
  return (clip_l2 + rounding) * (1.0 + std::ldexp(1.0, -20));
}

}  // namespace domicile::updates
