#include "models/precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace domicile::models {
namespace {

// What the bits mean, by the definition: in float64, where every half is exact.
double ValueOfFloat16(std::uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10U) & 0x1FU);
  const double fraction = static_cast<double>(bits & 0x3FFU) / 1024;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -14)
                           : exponent == 31
                               ? (fraction == 0 ? std::numeric_limits<double>::infinity()
                                                : std::numeric_limits<double>::quiet_NaN())
                               : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

TEST_CASE("Float16: all 65536 numbers mean what the format says, and come back as they were") {
  for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = FromFloat16(half);
    const double want = ValueOfFloat16(bits);
    if (std::isnan(want)) {
      REQUIRE(std::isnan(value));
      REQUIRE(std::isnan(FromFloat16(ToFloat16(value))));
      continue;
    }
    REQUIRE(static_cast<double>(value) == want);
    REQUIRE(std::signbit(value) == std::signbit(want));
    REQUIRE(ToFloat16(value) == half);
  }
}

TEST_CASE("Float16: rounds to the nearest, ties to even, between all neighbours") {
  for (std::uint32_t bits = 0; bits < 0x7C00U; ++bits) {
    // Where the next would be infinite it stands for 2^16, as in the standard.
    const double low = ValueOfFloat16(bits);
    const double high = bits == 0x7BFFU ? 65536.0 : ValueOfFloat16(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact
    const auto even = static_cast<std::uint16_t>((bits & 1U) == 0 ? bits : bits + 1);
    REQUIRE(ToFloat16(middle) == even);
    REQUIRE(ToFloat16(-middle) == (even | 0x8000U));
    REQUIRE(ToFloat16(std::nextafter(middle, 0.0F)) == bits);
    REQUIRE(ToFloat16(std::nextafter(middle, 1e30F)) == bits + 1);
  }
  CHECK(ToFloat16(1e30F) == 0x7C00U);
  CHECK(ToFloat16(-std::numeric_limits<float>::infinity()) == 0xFC00U);
  CHECK(ToFloat16(std::numeric_limits<float>::denorm_min()) == 0);
}

TEST_CASE("Bfloat16: all 65536 numbers come back, and what lies between goes to the nearest") {
  for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = FromBfloat16(half);
    REQUIRE(std::bit_cast<std::uint32_t>(value) == bits << 16U);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(FromBfloat16(ToBfloat16(value))));
      continue;
    }
    REQUIRE(ToBfloat16(value) == half);
    if ((bits & 0x7F80U) == 0x7F80U) {
      continue;  // infinite: nothing lies beyond
    }
    const auto with = [bits](std::uint32_t below) {
      return ToBfloat16(std::bit_cast<float>((bits << 16U) | below));
    };
    REQUIRE(with(0x7FFFU) == bits);
    REQUIRE(with(0x8000U) == bits + (bits & 1U));
    REQUIRE(with(0x8001U) == bits + 1);
  }
  // A NaN whose upper half alone would be infinity.
  CHECK(std::isnan(FromBfloat16(ToBfloat16(std::bit_cast<float>(0x7F800001U)))));
}

TEST_CASE("RoundTo: rounds in place, and leaves float32 alone") {
  const std::vector<float> values = {1.0F / 3, -65520.0F, 1e-8F, 3.0F};
  std::vector<float> out(values.size());

  RoundTo(Precision::kFloat32, values, out);
  CHECK(out == values);
  RoundTo(Precision::kFloat16, values, out);
  CHECK(out ==
        std::vector<float>{0.333251953125F, -std::numeric_limits<float>::infinity(), 0.0F, 3.0F});
  std::copy(values.begin(), values.end(), out.begin());
  RoundTo(Precision::kBfloat16, out, out);
  CHECK(out == std::vector<float>{0.333984375F, -65536.0F, FromBfloat16(0x322CU), 3.0F});
}

TEST_CASE("LossScale: follows PyTorch's trace of growth and backoff") {
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/training_mechanics.json");
  const nlohmann::json golden = nlohmann::json::parse(file)["dynamic_loss_scaling"];
  const LossScaleSpec spec = {.initial = golden["init_scale"],
                              .growth = golden["growth_factor"],
                              .backoff = golden["backoff_factor"],
                              .growth_interval = golden["growth_interval"]};
  REQUIRE(CheckSpec(spec).ok());
  LossScale scale = {.scale = spec.initial};
  REQUIRE(golden["trace"].size() == 13);
  for (const auto& step : golden["trace"]) {
    CHECK(scale.scale == step["scale_before"].get<double>());
    scale = NextLossScale(spec, scale, step["overflow"]);
    CHECK(scale.scale == step["scale_after"].get<double>());
  }
}

TEST_CASE("LossScale: stays within its bounds, and a spec that cannot work is refused") {
  const LossScaleSpec spec = {.growth_interval = 1};
  LossScale low = {.scale = 1};
  LossScale high = {.scale = 1};
  for (int step = 0; step < 200; ++step) {
    low = NextLossScale(spec, low, true);
    high = NextLossScale(spec, high, false);
  }
  CHECK(low.scale == 0x1p-24);
  CHECK(high.scale == 0x1p64);
  CHECK_FALSE(CheckSpec(LossScaleSpec{.initial = 0}).ok());
  CHECK_FALSE(CheckSpec(LossScaleSpec{.growth = 1}).ok());
  CHECK_FALSE(CheckSpec(LossScaleSpec{.backoff = 1}).ok());
  CHECK_FALSE(CheckSpec(LossScaleSpec{.growth_interval = 0}).ok());
}

}  // namespace
}  // namespace domicile::models
