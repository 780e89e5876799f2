// Elementary functions that the compiler can turn into vector instructions: no branches, no library
// calls. Included by the kernel files only; everything has internal linkage.
#pragma once

#include <cstdint>

#include "models/layers/mask_bits.h"

namespace domicile::models::kernels {
namespace {

inline float Clamp(float x, float low, float high) {
  const float bounded = x < low ? low : x;
  return bounded > high ? high : bounded;
}

// exp(x), within 2 units in the last place; 0 is not reached: exp(-infinity) gives 1e-38.
[[maybe_unused]] inline float Exp(float x) {
  x = Clamp(x, -87.3F, 88.3F);
  // x = n log(2) + r. Adding and taking away 1.5 * 2^23 rounds to an integer.
  constexpr float kRound = 12582912.0F;
  const float n = (x * 1.44269504F + kRound) - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float mantissa = p * r * r + r + 1.0F;
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
  return mantissa * __builtin_bit_cast(float, bits);
}

// erf(x), within 4e-7: the rational approximation that XLA and Eigen use.
[[maybe_unused]] inline float Erf(float x) {
  x = Clamp(x, -4.0F, 4.0F);
  const float s = x * x;
  float a = -2.72614225801306e-10F;
  a = a * s + 2.77068142495902e-08F;
  a = a * s - 2.10102402082508e-06F;
  a = a * s - 5.69250639462346e-05F;
  a = a * s - 7.34990630326855e-04F;
  a = a * s - 2.95459980854025e-03F;
  a = a * s - 1.60960333262415e-02F;
  float b = -1.45660718464996e-05F;
  b = b * s - 2.13374055278905e-04F;
  b = b * s - 1.68282697438203e-03F;
  b = b * s - 7.37332916720468e-03F;
  b = b * s - 1.42647390514189e-02F;
  return x * a / b;
}

// tanh(x) = 1 - 2 / (exp(2x) + 1), without the cancellation near 0.
[[maybe_unused]] inline float Tanh(float x) {
  const float s = x * x;
  const float small = x * (1.0F - s * (0.333333333F - s * (0.133333333F - s * 0.0539682540F)));
  const float large = 1.0F - 2.0F / (Exp(2.0F * x) + 1.0F);
  return s < 0.04F ? small : large;
}

[[maybe_unused]] inline float Sigmoid(float x) { return 1.0F / (1.0F + Exp(-x)); }

}  // namespace
}  // namespace domicile::models::kernels
