#include "updates/metrics.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "updates/exact_sum.h"

namespace domicile::updates {
namespace {

TEST_CASE("AreaUnderCurve: pooled histograms give the independent implementation's values") {
  const auto text = ReadFile(
      std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/federated_statistics.json", 1U << 20U);
  REQUIRE(text.ok());
  const nlohmann::json auc = nlohmann::json::parse(*text)["auc"];
  const std::vector<double> scores = auc["scores"];
  const std::vector<int> labels = auc["labels"];
  const std::vector<int> sites = auc["site"];
  for (const auto& item : auc["histogram"].items()) {
    const std::size_t bins = std::stoul(item.key());
    CAPTURE(bins);
    ExactSum pooled(*HistogramGrid(1000, 10), 2 * bins);
    for (const int site : {0, 1, 2}) {
      std::vector<std::int64_t> histogram(2 * bins, 0);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        if (sites[i] == site) {
          ++histogram[static_cast<std::size_t>(labels[i]) * bins + ScoreBin(scores[i], bins)];
        }
      }
      REQUIRE(pooled.AddLevels(histogram, 1).ok());
    }
    const auto area = AreaUnderCurve(pooled.Levels());
    REQUIRE(area.ok());
    REQUIRE(area->has_value());
    CHECK(**area == doctest::Approx(item.value()["auc"].get<double>()).epsilon(1e-14));
  }
}

TEST_CASE("AreaUnderCurve: perfect, inverted, tied and missing classes") {
  const auto area = [](std::vector<std::int64_t> histogram) { return *AreaUnderCurve(histogram); };
  CHECK(area({5, 0, 0, 7}) == 1.0);
  CHECK(area({0, 5, 7, 0}) == 0.0);
  CHECK(area({5, 0, 7, 0}) == 0.5);
  CHECK_FALSE(area({5, 0, 0, 0}).has_value());
  CHECK_FALSE(area({0, 0, 0, 5}).has_value());
  constexpr std::int64_t kMany = std::int64_t{1} << 59U;
  CHECK(area({kMany, 0, 0, kMany}) == 1.0);
}

TEST_CASE("AreaUnderCurve: histograms that no rows can have are refused") {
  constexpr std::int64_t kMany = std::int64_t{1} << 60U;
  for (const std::vector<std::int64_t>& histogram :
       {std::vector<std::int64_t>{}, {1, 2, 3}, {1, -1}, {kMany, 1}, {kMany + 1, 0}}) {
    CHECK(AreaUnderCurve(histogram).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("ScoreBin: covers [0, 1], and anything else goes to an end") {
  CHECK(ScoreBin(0.0, 10) == 0);
  CHECK(ScoreBin(0.0999, 10) == 0);
  CHECK(ScoreBin(0.1, 10) == 1);
  CHECK(ScoreBin(0.9999, 10) == 9);
  CHECK(ScoreBin(1.0, 10) == 9);
  CHECK(ScoreBin(7.0, 10) == 9);
  CHECK(ScoreBin(-1.0, 10) == 0);
  CHECK(ScoreBin(std::nan(""), 10) == 0);
  CHECK(ScoreBin(std::numeric_limits<double>::infinity(), 10) == 9);
  CHECK(ScoreBin(std::nextafter(1.0, 0.0), 1000000) == 999999);
}

TEST_CASE("Metrics: losses are pooled over examples, and none is none") {
  const MetricSums a = *SiteMetrics(100, 50'000'000, 80);
  const MetricSums b = *SiteMetrics(300, 210'000'000, 150);
  ExactSum sum(*MetricsGrid(1000, 10), 4);
  REQUIRE(sum.AddLevels(PrintMetrics(a), 1).ok());
  REQUIRE(sum.AddLevels(PrintMetrics(b), 1).ok());
  const auto pooled = ParseMetrics(sum.Levels());
  REQUIRE(pooled.ok());
  CHECK(*MeanLoss(*pooled) == doctest::Approx(0.65));
  CHECK(*Accuracy(*pooled) == doctest::Approx(230.0 / 400.0));

  CHECK_FALSE(MeanLoss(MetricSums{}).has_value());
  CHECK_FALSE(Accuracy(MetricSums{}).has_value());
  CHECK_FALSE(Accuracy(*SiteMetrics(10, 1, std::nullopt)).has_value());
  // One site's loss was not finite (C15): the pooled loss is "none", not the mean of the others.
  const MetricSums without = *SiteMetrics(10, std::nullopt, 5);
  CHECK(without.loss_examples == 0);
  REQUIRE(sum.AddLevels(PrintMetrics(without), 1).ok());
  CHECK_FALSE(MeanLoss(*ParseMetrics(sum.Levels())).has_value());
}

TEST_CASE("Metrics: losses saturate, counts that make no sense are refused") {
  CHECK(SiteMetrics(2, 1'000'000'000, {})->loss_sum_micro == 2 * kLargestLossMicro);
  CHECK(SiteMetrics(2, -5, {})->loss_sum_micro == 0);
  CHECK(SiteMetrics(0, 5, {})->loss_sum_micro == 0);
  CHECK_FALSE(SiteMetrics(-1, 0, {}).ok());
  CHECK_FALSE(SiteMetrics(3, 0, 4).ok());
  CHECK_FALSE(SiteMetrics(3, 0, -1).ok());

  const std::vector<std::int64_t> bad[] = {
      {-1, 0, 0}, {5, 6, 0},    {5, -1, 0},   {5, 5, -1}, {5, 5, 5 * kLargestLossMicro + 1},
      {5, 0, 1},  {5, 5, 1, 6}, {5, 5, 1, -1}};
  for (const std::vector<std::int64_t>& numbers : bad) {
    CHECK(ParseMetrics(numbers).status().code() == StatusCode::kOutOfRange);
  }
  CHECK(ParseMetrics(std::vector<std::int64_t>{1, 2}).status().code() ==
        StatusCode::kInvalidArgument);
  const MetricSums sums = *SiteMetrics(5, 100, 3);
  CHECK(*ParseMetrics(PrintMetrics(sums)) == sums);
}

TEST_CASE("MetricsGrid: has room for every row, and never overflows") {
  CHECK(MetricsGrid(1000, 64)->MaxLevel() == 1000 * kLargestLossMicro);
  CHECK(HistogramGrid(1000, 64)->MaxLevel() == 1000);
  CHECK(MetricsGrid(std::int64_t{1} << 60U, 64)->MaxLevel() == (kSumLimit - 1) / 64);
  CHECK_FALSE(MetricsGrid(0, 64).ok());
  CHECK_FALSE(HistogramGrid(1, 0).ok());
}

}  // namespace
}  // namespace domicile::updates
