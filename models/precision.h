// Numbers of 16 bits, and what training with them needs: the loss scale.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace domicile::models {

// What matrix products read and activations are kept in. Parameters, sums, statistics and the
// optimizer are float32 always (mixed precision).
enum class Precision : std::uint8_t { kFloat32 = 0, kBfloat16 = 1, kFloat16 = 2 };

// IEEE 754 binary16 and bfloat16 (the upper half of a float32). To: nearest, ties to even;
// subnormal numbers are kept, what is too large becomes infinite, a NaN stays one. From: exact.
std::uint16_t ToFloat16(float value);
float FromFloat16(std::uint16_t bits);
std::uint16_t ToBfloat16(float value);
float FromBfloat16(std::uint16_t bits);

// to = the nearest numbers of that precision. `to` may be `from`; the sizes must be equal.
void RoundTo(Precision precision, std::span<const float> from, std::span<float> to);

// Dynamic loss scaling (Micikevicius et al. 2018): gradients too small for float16 are kept by
// scaling the loss; a step whose gradient overflows is skipped.
struct LossScaleSpec {
  double initial = 65536;
  double growth = 2;     // after growth_interval steps in a row without overflow
  double backoff = 0.5;  // after an overflow
  std::uint64_t growth_interval = 2000;
};

// Errors: kInvalidArgument, naming the field: an initial scale outside [2^-24, 2^64], growth not
// above 1, backoff outside (0, 1), no interval.
Status CheckSpec(const LossScaleSpec& spec);

struct LossScale {
  double scale = 1;
  std::uint64_t good_steps = 0;  // since the scale last changed

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

// The scale of the next step, kept within [2^-24, 2^64].
LossScale NextLossScale(const LossScaleSpec& spec, LossScale scale, bool overflow);

}  // namespace domicile::models
