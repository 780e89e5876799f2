#include "updates/clip.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"
#include "updates/grid.h"

namespace domicile::updates {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomFloats(std::size_t count, std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(random.Below(2000001)) / 1e6 - 1.0);
  }
  return values;
}

TEST_CASE("L2Norm: of known vectors, and never an overflow") {
  CHECK(*L2Norm(std::array<float, 2>{3, 4}) == 5.0);
  CHECK(*L2Norm(std::vector<float>{}) == 0.0);
  // The norm of two values near the end of float32 (case C15, site e).
  CHECK(*L2Norm(std::array<float, 4>{3.4e38F, 3.4e38F, 0, 0}) ==
        doctest::Approx(4.808e38).epsilon(0.001));
  const std::vector<float> largest(3 * kNormBlock, std::numeric_limits<float>::max());
  CHECK(std::isfinite(*L2Norm(largest)));
}

TEST_CASE("L2Norm: is the sum in 16 lanes by blocks, whatever the length") {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{1000}, kNormBlock - 1,
        kNormBlock, kNormBlock + 17, 2 * kNormBlock + 5}) {
    CAPTURE(count);
    const std::vector<float> values = RandomFloats(count, count);
    // The page's definition, element by element.
    double total = 0;
    for (std::size_t first = 0; first < count; first += kNormBlock) {
      std::array<double, 16> lanes{};
      for (std::size_t i = first; i < std::min(count, first + kNormBlock); ++i) {
        lanes[(i - first) % 16] += double{values[i]} * double{values[i]};
      }
      for (std::size_t width = 8; width > 0; width /= 2) {
        for (std::size_t lane = 0; lane < width; ++lane) {
          lanes[lane] += lanes[lane + width];
        }
      }
      total += lanes[0];
    }
    CHECK(*L2Norm(values) == std::sqrt(total));
  }
}

TEST_CASE("ClipL2: values at or below the bound stay as they are") {
  const std::vector<float> values = {3, 4, -0.0F};
  std::vector<float> clipped = values;
  CHECK(*ClipL2(5.0, clipped) == 5.0);
  CHECK(clipped == values);
  CHECK(std::signbit(clipped[2]));
}

TEST_CASE("ClipL2: values above the bound are scaled onto it") {
  std::vector<float> clipped = {3, 4, 0, 0};
  CHECK(*ClipL2(1.0, clipped) == 5.0);
  CHECK(clipped == std::vector<float>{0.6F, 0.8F, 0, 0});

  std::vector<float> many = RandomFloats(100000, 3);
  REQUIRE(ClipL2(0.5, many).ok());
  CHECK(*L2Norm(many) == doctest::Approx(0.5).epsilon(1e-6));

  std::vector<float> huge = {3.4e38F, 3.4e38F};
  REQUIRE(ClipL2(1.0, huge).ok());
  CHECK(huge[0] == doctest::Approx(0.70710678));
}

TEST_CASE("ClipL2: what is not finite is refused before it is clipped") {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    std::vector<float> values = {0.1F, bad, 0.2F, 30.0F};
    const auto norm = ClipL2(1.0, values);
    CHECK(norm.status().code() == StatusCode::kInvalidArgument);
    CHECK(Message(norm.status()) == "value 1 is not finite");
    CHECK(values[3] == 30.0F);
  }
  std::vector<float> values = {1};
  CHECK_FALSE(ClipL2(0, values).ok());
  CHECK_FALSE(ClipL2(std::nan(""), values).ok());
}

TEST_CASE("LargestNormOnGrid: holds what an honest site sends, and little more") {
  for (const std::uint32_t scale_bits : {8U, 16U, 32U}) {
    CAPTURE(scale_bits);
    std::vector<float> values = RandomFloats(50000, scale_bits);
    REQUIRE(ClipL2(0.25, values).ok());
    REQUIRE(RoundToGrid(*GridPlan::ForClip(0.25, scale_bits, 1, 1), values).ok());
    CHECK(*L2Norm(values) <= LargestNormOnGrid(0.25, values.size(), scale_bits));
  }
  CHECK(LargestNormOnGrid(0.25, 50000, 32) < 0.2501);
}

}  // namespace
}  // namespace domicile::updates
