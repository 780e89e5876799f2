#include "updates/grid.h"

#include <bit>
#include <cmath>
#include <string>

#include "updates/internal/kernel.h"

namespace domicile::updates {
namespace {

Status CheckAtLeastOne(std::int64_t value, std::string_view name) {
  if (value < 1) {
    return Error(StatusCode::kInvalidArgument, "`" + std::string(name) +
                                                   "` of the grid must be at least 1, found " +
                                                   std::to_string(value));
  }
  return OkStatus();
}

// The greatest level that is at most max_level and a float32: its first 24 significant bits.
double LargestFloatLevel(const GridPlan& plan) {
  const auto level = static_cast<std::uint64_t>(plan.MaxLevel());
  const auto width = static_cast<unsigned>(std::bit_width(level));
  const unsigned cut = width > 24 ? width - 24 : 0;
  return static_cast<double>((level >> cut) << cut);
}

}  // namespace

StatusOr<GridPlan> GridPlan::Create(std::uint32_t scale_bits, std::int64_t max_level,
                                    std::int64_t max_weight, std::int64_t max_sites) {
  if (scale_bits > kLargestScaleBits) {
    return Error(StatusCode::kInvalidArgument, "`scale_bits` of the grid must be at most " +
                                                   std::to_string(kLargestScaleBits) + ", found " +
                                                   std::to_string(scale_bits));
  }
  RETURN_IF_ERROR(CheckAtLeastOne(max_level, "max_level"));
  RETURN_IF_ERROR(CheckAtLeastOne(max_weight, "max_weight"));
  RETURN_IF_ERROR(CheckAtLeastOne(max_sites, "max_sites"));
  std::int64_t product = 0;
  if (__builtin_mul_overflow(max_level, max_weight, &product) ||
      __builtin_mul_overflow(product, max_sites, &product) || product >= kSumLimit) {
    return Error(StatusCode::kInvalidArgument,
                 "the grid could overflow: max_sites " + std::to_string(max_sites) +
                     " * max_weight " + std::to_string(max_weight) + " * max_level " +
                     std::to_string(max_level) +
                     " must be below 2^62; lower one of them, or `scale_bits`");
  }
  return GridPlan(scale_bits, max_level, max_weight, max_sites);
}

StatusOr<GridPlan> GridPlan::ForClip(double clip_l2, std::uint32_t scale_bits,
                                     std::int64_t max_weight, std::int64_t max_sites) {
  if (!std::isfinite(clip_l2) || clip_l2 <= 0) {
    return Error(StatusCode::kInvalidArgument, "`clip_l2` must be finite and above 0");
  }
  if (scale_bits > kLargestScaleBits) {
    return Create(scale_bits, 1, max_weight, max_sites);
  }
  const double levels = std::ceil(std::ldexp(clip_l2, static_cast<int>(scale_bits)));
  if (levels > static_cast<double>(kLargestFloatLevel)) {
    return Error(StatusCode::kInvalidArgument,
                 "`clip_l2` * 2^scale_bits must be at most 2^50; lower one of them");
  }
  return Create(scale_bits, static_cast<std::int64_t>(levels), max_weight, max_sites);
}

std::uint32_t GridPlan::BitsPerNumber() const {
  // The smallest b with 2^b >= 2 * max_level + 1, that is, the width of 2 * max_level.
  return static_cast<std::uint32_t>(std::bit_width(2 * static_cast<std::uint64_t>(max_level_)));
}

double GridPlan::Scale() const { return std::ldexp(1.0, static_cast<int>(scale_bits_)); }
double GridPlan::Step() const { return std::ldexp(1.0, -static_cast<int>(scale_bits_)); }

Status RoundToGrid(const GridPlan& plan, std::span<float> values) {
  if (plan.MaxLevel() > kLargestFloatLevel) {
    return Error(StatusCode::kInvalidArgument, "a grid of floats needs max_level at most 2^50");
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  if (!internal::NormOf(bytes, values.size())) {
    return Error(StatusCode::kInvalidArgument,
                 "value " + std::to_string(internal::FirstNotFinite(bytes, values.size())) +
                     " is not finite");
  }
  const double scale = plan.Scale();
  const double step = plan.Step();
  const double largest = LargestFloatLevel(plan);
  for (float& value : values) {
    double level = static_cast<double>(value) * scale;
    level = level > largest ? largest : level;
    level = level < -largest ? -largest : level;
    // A small negative level gives kMagic - kMagic, which is +0: the grid has no -0.
    level = (level + internal::kMagic) - internal::kMagic;
    value = static_cast<float>(level * step);
  }
  return OkStatus();
}

Status RoundToLevels(const GridPlan& plan, std::span<const double> values,
                     std::span<std::int64_t> levels) {
  if (levels.size() != values.size()) {
    return Error(StatusCode::kInvalidArgument, "as many levels as values are needed");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return Error(StatusCode::kInvalidArgument, "value " + std::to_string(i) + " is not finite");
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Exact but for overflow to infinity, which saturates like anything else that is large.
    const double level = std::nearbyint(std::ldexp(values[i], static_cast<int>(plan.ScaleBits())));
    // A double at or above max_level rounded to double may lie above it: compare before converting.
    if (level >= static_cast<double>(plan.MaxLevel())) {
      levels[i] = plan.MaxLevel();
    } else if (level <= -static_cast<double>(plan.MaxLevel())) {
      levels[i] = -plan.MaxLevel();
    } else {
      levels[i] = static_cast<std::int64_t>(level);
    }
  }
  return OkStatus();
}

}  // namespace domicile::updates
