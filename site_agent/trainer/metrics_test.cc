#include "site_agent/trainer/metrics.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::site_agent {
namespace {

TEST_CASE("Auc: is the share of pairs in the right order, ties counting half") {
  const std::vector<double> scores = {0.1, 0.4, 0.35, 0.8, 0.4};
  const std::vector<std::uint32_t> labels = {0, 0, 1, 1, 1};
  // Pairs (negative, positive): 0.1 loses to all 3; 0.4 beats 0.35, loses to 0.8, ties with 0.4.
  CHECK(Auc(scores, labels).value() == doctest::Approx(4.5 / 6).epsilon(1e-15));
  CHECK(Auc(std::vector<double>{1, 1}, std::vector<std::uint32_t>{0, 1}).value() == 0.5);
  CHECK_FALSE(Auc(std::vector<double>{0.3, 0.4}, std::vector<std::uint32_t>{1, 1}).has_value());
  CHECK_FALSE(Auc({}, {}).has_value());
}

TEST_CASE("Auc: from histograms is exact for scores that are bins") {
  SeededRandom random(4);
  std::vector<double> scores;
  std::vector<std::uint32_t> labels;
  std::vector<std::vector<std::int64_t>> histogram(2, std::vector<std::int64_t>(20, 0));
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t bin = random.Below(20);
    const auto label = static_cast<std::uint32_t>(random.Below(30) < bin + 5 ? 1 : 0);
    scores.push_back(static_cast<double>(bin));
    labels.push_back(label);
    ++histogram[label][bin];
  }

  const double exact = Auc(scores, labels).value();

  CHECK(exact > 0.6);
  CHECK(AucFromHistogram(histogram[0], histogram[1]).value() ==
        doctest::Approx(exact).epsilon(1e-12));
  CHECK_FALSE(AucFromHistogram(histogram[0], std::vector<std::int64_t>(20, 0)).has_value());
}

TEST_CASE("Measure: accuracy, majority line and log loss of a small table") {
  const std::vector<double> probabilities = {0.9, 0.1, 0.5, 0.5, 0.2, 0.8, 0.0, 1.0};
  const std::vector<std::uint32_t> labels = {0, 0, 1, 0};

  const Metrics metrics = Measure(probabilities, labels, 2);

  CHECK(metrics.examples == 4);
  CHECK(metrics.accuracy == 0.75);  // a probability of one half names class 0
  CHECK(metrics.majority == 0.75);
  const double loss = -(std::log(0.9) + std::log(0.5) + std::log(0.8) + std::log(1e-12)) / 4;
  CHECK(metrics.log_loss == doctest::Approx(loss).epsilon(1e-9));
  CHECK(metrics.auc.value() == doctest::Approx(2.0 / 3));
  CHECK(Measure({}, {}, 2).examples == 0);
}

TEST_CASE("Measure: with more classes the most probable one counts, and there is no AUC") {
  const std::vector<double> probabilities = {0.2, 0.5, 0.3, 0.4, 0.4, 0.2};
  const Metrics metrics = Measure(probabilities, std::vector<std::uint32_t>{1, 0}, 3);

  CHECK(metrics.accuracy == 1.0);
  CHECK_FALSE(metrics.auc.has_value());
}

}  // namespace
}  // namespace domicile::site_agent
