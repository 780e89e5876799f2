#include "updates/statistics.h"

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/random.h"
#include "updates/exact_sum.h"

namespace domicile::updates {
namespace {

nlohmann::json Golden() {
  const auto text = ReadFile(
      std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/federated_statistics.json", 1U << 20U);
  REQUIRE(text.ok());
  return nlohmann::json::parse(*text);
}

// What a site's trainer does: sums in double, each rounded once.
Moments MomentsOf(const std::vector<double>& values, double offset, std::uint32_t scale_bits) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value - offset;
    squares += (value - offset) * (value - offset);
  }
  const auto scale = static_cast<int>(scale_bits);
  return {static_cast<std::int64_t>(values.size()), std::llrint(std::ldexp(sum, scale)),
          std::llrint(std::ldexp(squares, scale))};
}

TEST_CASE("Normalise: pools sites as if their rows lay in one table, at any offset") {
  const nlohmann::json golden = Golden();
  struct Case {
    const char* name;
    double offset;
    double range;
  };
  for (const Case& c : {Case{"moments", 5.0, 20.0}, Case{"moments_large_offset", 1e9, 10.0}}) {
    CAPTURE(c.name);
    const auto& vector = golden[c.name];
    const StatisticsRules rules = {.scale_bits = 24,
                                   .max_rows = 1000,
                                   .offsets = {c.offset},
                                   .ranges = {c.range},
                                   .deviation_floor = 1e-3};
    ExactSum sum(*StatisticsGrid(rules, 10), 3);
    for (const auto& site : vector["sites"]) {
      const std::vector<Moments> moments = {MomentsOf(site, c.offset, rules.scale_bits)};
      REQUIRE(CheckSiteMoments(rules, moments).ok());
      REQUIRE(sum.AddLevels(PrintMoments(moments), 1).ok());
    }
    const auto result = Normalise(rules, *ParseMoments(sum.Levels()));
    REQUIRE(result.ok());
    // Half a level of each site's sum, and the last digit of a double.
    CHECK(std::fabs(result->mean[0] - vector["merged"]["mean"].get<double>()) < 2e-7);
    CHECK(result->deviation[0] ==
          doctest::Approx(std::sqrt(vector["variance_population"].get<double>())).epsilon(1e-6));
  }
}

TEST_CASE("Normalise: exact where products leave 64 bits, and near a cancellation") {
  // n rows of which one is apart: n * squares and sum^2 agree in their first 60 bits.
  const StatisticsRules rules = {
      .scale_bits = 0, .max_rows = 1, .offsets = {0}, .ranges = {1}, .deviation_floor = 0};
  const std::int64_t n = 1000000000;
  const std::int64_t value = 50000;
  const Moments moments = {n, n * value + 1, n * value * value + 2 * value + 1};
  const auto result = Normalise(rules, std::vector<Moments>{moments});
  REQUIRE(result.ok());
  // variance = (n - 1) / n^2
  CHECK(result->deviation[0] == doctest::Approx(std::sqrt((1e9 - 1) / 1e18)).epsilon(1e-15));
}

TEST_CASE("Normalise: no value, too small a deviation and wrong shapes are errors") {
  StatisticsRules rules = {.scale_bits = 8,
                           .max_rows = 100,
                           .offsets = {0, 0},
                           .ranges = {10, 10},
                           .deviation_floor = 0.5};
  const Moments good = MomentsOf({1, 2, 3, 4}, 0, 8);
  const Moments constant = MomentsOf({3, 3, 3}, 0, 8);
  const Moments none = {};
  REQUIRE(Normalise(rules, std::vector<Moments>{good, good}).ok());

  auto result = Normalise(rules, std::vector<Moments>{good, constant});
  CHECK(result.status().code() == StatusCode::kFailedPrecondition);
  CHECK(Message(result.status()).substr(0, 8) == "input 1:");
  result = Normalise(rules, std::vector<Moments>{none, good});
  CHECK(result.status().code() == StatusCode::kFailedPrecondition);
  CHECK(Message(result.status()) == "input 0 has no value at any site");
  result = Normalise(rules, std::vector<Moments>{good});
  CHECK(result.status().code() == StatusCode::kInvalidArgument);
  rules.scale_bits = 100;
  const Moments vast = {std::int64_t{1} << 50U, 0, std::int64_t{1} << 60U};
  result = Normalise(rules, std::vector<Moments>{vast, good});
  CHECK(result.status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("CheckSiteMoments: takes what rows can have, refuses what they cannot") {
  const StatisticsRules rules = {
      .scale_bits = 8, .max_rows = 50, .offsets = {2}, .ranges = {3}, .deviation_floor = 0};
  SeededRandom random(5);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    std::vector<double> values(random.Below(51));
    for (double& value : values) {
      value = 2.0 + 3.0 * (static_cast<double>(random.Below(2001)) / 1000.0 - 1.0);
    }
    if (repeat % 3 == 0 && !values.empty()) {
      values.assign(values.size(), values[0]);  // where Cauchy and Schwarz is an equality
    }
    REQUIRE(CheckSiteMoments(rules, std::vector<Moments>{MomentsOf(values, 2, 8)}).ok());
  }
  const Moments bad[] = {
      {51, 0, 0},                   // more rows than max_rows
      {-1, 0, 0},                   // fewer than none
      {2, 2 * 3 * 256 + 3, 5000},   // a sum beyond the range
      {2, -2 * 3 * 256 - 3, 5000},  // the same below
      {2, 0, 2 * 9 * 256 + 3},      // squares beyond the range
      {2, 0, -1},                   // squares below zero
      {2, 1000, 100},               // sum^2 > n * squares
      {0, 5, 5},                    // sums of nothing
  };
  for (const Moments& moments : bad) {
    CAPTURE(moments.n);
    CAPTURE(moments.sum);
    const Status status = CheckSiteMoments(rules, std::vector<Moments>{moments});
    CHECK(status.code() == StatusCode::kOutOfRange);
  }
  CHECK(CheckSiteMoments(rules, {}).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("StatisticsGrid: has room for every sum the ranges allow, or is refused") {
  StatisticsRules rules = {.scale_bits = 20,
                           .max_rows = 1000,
                           .offsets = {0, 0},
                           .ranges = {0.5, 100},
                           .deviation_floor = 0};
  CHECK(StatisticsGrid(rules, 64)->MaxLevel() == std::int64_t{1000} * 10000 * (1 << 20));
  rules.ranges = {0.25, 0.5};
  rules.scale_bits = 0;
  CHECK(StatisticsGrid(rules, 64)->MaxLevel() == 1000);  // n itself
  rules.scale_bits = 60;
  CHECK_FALSE(StatisticsGrid(rules, 64).ok());
  rules.ranges = {0, 1};
  CHECK_FALSE(StatisticsGrid(rules, 64).ok());
}

TEST_CASE("PrintMoments: ParseMoments reads back what it prints") {
  const std::vector<Moments> moments = {{1, -2, 3}, {4, 5, 6}};
  CHECK(PrintMoments(moments) == std::vector<std::int64_t>{1, 4, -2, 5, 3, 6});
  CHECK(*ParseMoments(PrintMoments(moments)) == moments);
  CHECK_FALSE(ParseMoments(std::vector<std::int64_t>{1, 2}).ok());
  CHECK_FALSE(ParseMoments({}).ok());
}

}  // namespace
}  // namespace domicile::updates
