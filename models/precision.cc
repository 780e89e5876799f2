#include "models/precision.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace domicile::models {
namespace {

constexpr std::uint32_t kFloatInfinity = 0x7F800000U;
constexpr double kSmallestScale = 0x1p-24;
constexpr double kLargestScale = 0x1p64;

// bits >> shift, to nearest, ties to even; 1 <= shift <= 31.
std::uint32_t ShiftRounded(std::uint32_t bits, std::uint32_t shift) {
  const std::uint32_t half = (1U << (shift - 1)) - 1 + ((bits >> shift) & 1U);
  return (bits + half) >> shift;
}

}  // namespace

std::uint16_t ToFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > kFloatInfinity) {  // a NaN keeps its upper bits, and becomes a quiet one
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13U) & 0x1FFU));
  }
  if (magnitude >= 0x47800000U) {  // 2^16 and above
    return static_cast<std::uint16_t>(sign | 0x7C00U);
  }
  const std::uint32_t exponent = magnitude >> 23U;
  if (exponent >= 113) {  // 2^-14 and above: normal; a carry out of the fraction is right, also to
                          // infinity
    return static_cast<std::uint16_t>(sign | ShiftRounded(magnitude - (112U << 23U), 13));
  }
  if (exponent < 102) {  // below half of the smallest subnormal, 2^-25
    return sign;
  }
  const std::uint32_t fraction = (magnitude & 0x7FFFFFU) | 0x800000U;
  return static_cast<std::uint16_t>(sign | ShiftRounded(fraction, 126 - exponent));
}

float FromFloat16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // fraction * 2^-24, exact in float32
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign == 0 ? magnitude : -magnitude;
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

std::uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > kFloatInfinity) {
    return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  }
  return static_cast<std::uint16_t>(ShiftRounded(bits, 16));
}

float FromBfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

void RoundTo(Precision precision, std::span<const float> from, std::span<float> to) {
  DOMICILE_CHECK(from.size() == to.size());
  switch (precision) {
    case Precision::kFloat32:
      if (from.data() != to.data()) {
        std::copy(from.begin(), from.end(), to.begin());
      }
      return;
    case Precision::kBfloat16:
      std::transform(from.begin(), from.end(), to.begin(),
                     [](float value) { return FromBfloat16(ToBfloat16(value)); });
      return;
    case Precision::kFloat16:
      std::transform(from.begin(), from.end(), to.begin(),
                     [](float value) { return FromFloat16(ToFloat16(value)); });
      return;
  }
}

Status CheckSpec(const LossScaleSpec& spec) {
  const auto refuse = [](const char* what) { return Error(StatusCode::kInvalidArgument, what); };
  if (!(spec.initial >= kSmallestScale && spec.initial <= kLargestScale)) {
    return refuse("the first loss scale must be from 2^-24 to 2^64");
  }
  if (!(spec.growth > 1) || !std::isfinite(spec.growth)) {
    return refuse("the growth of the loss scale must be above 1");
  }
  if (!(spec.backoff > 0 && spec.backoff < 1)) {
    return refuse("the backoff of the loss scale must be between 0 and 1");
  }
  if (spec.growth_interval == 0) {
    return refuse("the loss scale needs at least 1 step before it grows");
  }
  return OkStatus();
}

LossScale NextLossScale(const LossScaleSpec& spec, LossScale scale, bool overflow) {
  if (overflow) {
    return {.scale = std::max(scale.scale * spec.backoff, kSmallestScale), .good_steps = 0};
  }
  if (scale.good_steps + 1 < spec.growth_interval) {
    return {.scale = scale.scale, .good_steps = scale.good_steps + 1};
  }
  return {.scale = std::min(scale.scale * spec.growth, kLargestScale), .good_steps = 0};
}

}  // namespace domicile::models
