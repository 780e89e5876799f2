#include "updates/grid.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::updates {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

GridPlan MakePlan(std::uint32_t scale_bits, std::int64_t max_level) {
  return *GridPlan::Create(scale_bits, max_level, 10, 4);
}

TEST_CASE("GridPlan: only limits whose sums stay below 2^62 make one") {
  struct Case {
    const char* name;
    std::uint32_t scale_bits;
    std::int64_t max_level;
    std::int64_t max_weight;
    std::int64_t max_sites;
    bool ok;
  };
  constexpr std::int64_t kOne = 1;
  const Case cases[] = {
      {"ordinary", 32, kOne << 32U, 1000, 64, true},
      {"just below", 0, (kOne << 62U) - 1, 1, 1, true},
      {"at the limit", 0, kOne << 62U, 1, 1, false},
      {"at the limit as a product", 0, kOne << 40U, kOne << 20U, 4, false},
      {"just below as a product", 0, (kOne << 40U) - 1, kOne << 20U, 4, true},
      {"wraps around 64 bits", 0, kOne << 40U, kOne << 40U, 1, false},
      {"no level", 32, 0, 1, 1, false},
      {"negative level", 32, -5, 1, 1, false},
      {"no weight", 32, 1, 0, 1, false},
      {"no site", 32, 1, 1, 0, false},
      {"finest", 120, 1, 1, 1, true},
      {"too fine", 121, 1, 1, 1, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto plan = GridPlan::Create(c.scale_bits, c.max_level, c.max_weight, c.max_sites);
    CHECK(plan.ok() == c.ok);
    if (!plan.ok()) {
      CHECK(plan.status().code() == StatusCode::kInvalidArgument);
    }
  }
}

TEST_CASE("GridPlan: a clip bound gives the levels it needs") {
  const auto plan = GridPlan::ForClip(0.7, 4, 1, 1);
  REQUIRE(plan.ok());
  CHECK(plan->MaxLevel() == 12);  // 0.7 * 16 = 11.2
  CHECK(plan->Scale() == 16.0);
  CHECK(plan->Step() == 0.0625);
  CHECK(GridPlan::ForClip(4, 48, 1, 1)->MaxLevel() == kLargestFloatLevel);
  CHECK_FALSE(GridPlan::ForClip(4.5, 48, 1, 1).ok());
  CHECK_FALSE(GridPlan::ForClip(0, 32, 1, 1).ok());
  CHECK_FALSE(GridPlan::ForClip(std::nan(""), 32, 1, 1).ok());
  CHECK_FALSE(GridPlan::ForClip(1, 200, 1, 1).ok());
}

TEST_CASE("GridPlan: bits of a number count all its levels") {
  CHECK(MakePlan(0, 1).BitsPerNumber() == 2);    // -1, 0, 1
  CHECK(MakePlan(0, 3).BitsPerNumber() == 3);    // 7 levels
  CHECK(MakePlan(0, 4).BitsPerNumber() == 4);    // 9 levels
  CHECK(MakePlan(0, 127).BitsPerNumber() == 8);  // 255 levels
  CHECK(MakePlan(32, std::int64_t{1} << 32U).BitsPerNumber() == 34);
}

TEST_CASE("RoundToGrid: nearest level, ties to even, saturated, never -0") {
  struct Case {
    const char* name;
    float value;
    float want;
  };
  const Case cases[] = {
      {"on the grid", 0.5F, 0.5F},
      {"down", 0.3F, 0.25F},
      {"up", 0.4F, 0.5F},
      {"tie to even below", 0.125F, 0.0F},
      {"tie to even above", 0.375F, 0.5F},
      {"negative tie", -0.375F, -0.5F},
      {"tiny negative", -0.01F, 0.0F},
      {"negative zero", -0.0F, 0.0F},
      {"saturates", 7.0F, 2.5F},
      {"saturates below", -1e30F, -2.5F},
      {"largest float", std::numeric_limits<float>::max(), 2.5F},
      {"smallest float", std::numeric_limits<float>::denorm_min(), 0.0F},
  };
  const GridPlan plan = MakePlan(2, 10);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::array<float, 1> values = {c.value};
    REQUIRE(RoundToGrid(plan, values).ok());
    CHECK(std::bit_cast<std::uint32_t>(values[0]) == std::bit_cast<std::uint32_t>(c.want));
  }
}

TEST_CASE("RoundToGrid: a float on a power-of-two grid is a float again, and stays") {
  SeededRandom random(7);
  for (const std::uint32_t scale_bits : {0U, 8U, 32U, 48U}) {
    CAPTURE(scale_bits);
    const GridPlan plan = MakePlan(scale_bits, kLargestFloatLevel);
    std::vector<float> values(20000);
    for (float& value : values) {
      // Any sign and mantissa, exponents around the step.
      const std::uint64_t exponent = 127 - scale_bits + random.Below(50) - 25;
      value = std::bit_cast<float>(static_cast<std::uint32_t>(
          (random.Below(2) << 31U) | (exponent << 23U) | random.Below(1U << 23U)));
    }
    const std::vector<float> before = values;
    REQUIRE(RoundToGrid(plan, values).ok());
    for (std::size_t i = 0; i < values.size(); ++i) {
      // The oracle rounds in double, by the library.
      const double level =
          std::nearbyint(std::ldexp(double{before[i]}, static_cast<int>(scale_bits)));
      REQUIRE(std::ldexp(double{values[i]}, static_cast<int>(scale_bits)) == level);
    }
    std::vector<float> again = values;
    REQUIRE(RoundToGrid(plan, again).ok());
    CHECK(again == values);
  }
}

TEST_CASE("RoundToGrid: saturation keeps 24 bits of the largest level") {
  const GridPlan plan = MakePlan(32, (std::int64_t{1} << 32U) - 1);
  std::array<float, 2> values = {5.0F, -5.0F};
  REQUIRE(RoundToGrid(plan, values).ok());
  CHECK(double{values[0]} * plan.Scale() == 4294967040.0);  // 0xFFFFFF00
  CHECK(values[1] == -values[0]);
}

TEST_CASE("RoundToGrid: what is not finite is an error that names the index and changes nothing") {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    std::vector<float> values(100, 0.3F);
    values[77] = bad;
    values[90] = bad;
    const Status status = RoundToGrid(MakePlan(2, 10), values);
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Message(status) == "value 77 is not finite");
    CHECK(values[0] == 0.3F);
  }
  std::array<float, 1> values = {0.0F};
  CHECK_FALSE(RoundToGrid(MakePlan(0, kLargestFloatLevel + 1), values).ok());
}

TEST_CASE("RoundToLevels: rounds, saturates at any level, refuses what is not finite") {
  const GridPlan plan = MakePlan(1, 9);
  const std::array<double, 6> values = {0.25, 0.75, -1.3, 1e300, -1e300, 4.4};
  std::array<std::int64_t, 6> levels{};
  REQUIRE(RoundToLevels(plan, values, levels).ok());
  CHECK(levels == std::array<std::int64_t, 6>{0, 2, -3, 9, -9, 9});

  const GridPlan large = *GridPlan::Create(0, kSumLimit - 1, 1, 1);
  const std::array<double, 2> edges = {4.611686018427388e18, -4.611686018427388e18};
  std::array<std::int64_t, 2> edge_levels{};
  REQUIRE(RoundToLevels(large, edges, edge_levels).ok());
  CHECK(edge_levels[0] == kSumLimit - 1);
  CHECK(edge_levels[1] == -(kSumLimit - 1));

  const std::array<double, 2> bad = {0.0, std::nan("")};
  const Status status = RoundToLevels(plan, bad, edge_levels);
  CHECK(Message(status) == "value 1 is not finite");
  CHECK(edge_levels[0] == kSumLimit - 1);
  CHECK_FALSE(RoundToLevels(plan, bad, levels).ok());
}

}  // namespace
}  // namespace domicile::updates
