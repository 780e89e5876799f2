#include "site_agent/egress/model_intake.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>

#include <doctest/doctest.h>

#include "base/random.h"
#include "contracts/normalisation.h"
#include "site_agent/egress/testing.h"
#include "site_agent/trainer/execute.h"
#include "tests/support/federation_in_memory.h"
#include "updates/clip.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

TEST_CASE("CheckModel: each reason") {
  const contracts::Plan plan = HeartPlan();
  const auto norm = static_cast<float>(plan.update.clip_l2);
  struct Case {
    const char* name;
    std::uint32_t commits;
    bool statistics;
    std::function<void(Model&)> change;
    Reason want;
  };
  const auto mean = [](float value) { return [value](Model& m) { m[2].values[0] = value; }; };
  const auto deviation = [](float value) { return [value](Model& m) { m[3].values[0] = value; }; };
  const auto weight = [](float value) { return [value](Model& m) { m[0].values[3] = value; }; };
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {
      {"the same", 0, false, [](Model&) {}, Reason::kNone},
      {"a step of the clip norm", 1, false, weight(norm), Reason::kNone},
      {"the other way", 1, false, weight(-norm), Reason::kNone},
      {"a little further", 1, false, weight(norm * 1.001F), Reason::kModelJump},
      {"in two weights", 1, false, [&](Model& m) { m[0].values[0] = m[1].values[0] = norm; },
       Reason::kModelJump},
      {"no commit", 0, false, weight(1e-3F), Reason::kModelJump},
      {"two rounds missed", 2, false, weight(2 * norm), Reason::kNone},
      {"further than two", 2, false, weight(2.002F * norm), Reason::kModelJump},
      {"statistics are no step", 0, true, weight(1), Reason::kModelJump},
      {"constants without statistics", 1, false, mean(3), Reason::kNormalisation},
      {"constants once committed", 0, true, mean(3), Reason::kNone},
      {"deviation without statistics", 1, false, deviation(2), Reason::kNormalisation},
      {"deviation at the floor", 0, true, deviation(1e-3F), Reason::kNone},
      {"deviation below the floor", 0, true, deviation(0.9e-3F), Reason::kNormalisation},
      {"deviation zero", 0, true, deviation(0), Reason::kNormalisation},
      {"deviation negative", 0, true, deviation(-1), Reason::kNormalisation},
      {"not a number", 1, false, weight(nan), Reason::kModelNotFinite},
      {"infinite bias", 1, false,
       [](Model& m) { m[1].values[0] = std::numeric_limits<float>::infinity(); },
       Reason::kModelNotFinite},
      {"constant not a number", 0, true, deviation(nan), Reason::kModelNotFinite},
      {"a tensor more", 1, false, [](Model& m) { m.push_back(m[1]); }, Reason::kModelShape},
      {"a tensor less", 1, false, [](Model& m) { m.pop_back(); }, Reason::kModelShape},
      {"another name", 1, false, [](Model& m) { m[0].name = "wight"; }, Reason::kModelShape},
      {"another order", 1, false, [](Model& m) { std::swap(m[0], m[1]); }, Reason::kModelShape},
      {"another shape", 1, false,
       [](Model& m) {
         m[0].shape = {13, 1};
       },
       Reason::kModelShape},
      {"integers", 1, false, [](Model& m) { m[1].type = models::DataType::kInt64; },
       Reason::kModelShape},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Model model = ZeroModel(plan);
    c.change(model);
    CHECK(CheckModel(plan,
                     {.last = ZeroModel(plan),
                      .train_commits = c.commits,
                      .statistics_committed = c.statistics},
                     model) == c.want);
  }
}

TEST_CASE("CheckModel: a server rate below one makes steps smaller") {
  contracts::Plan plan = HeartPlan();
  plan.update.server_learning_rate = 0.5;
  Model model = ZeroModel(plan);
  const IntakeState state{.last = model, .train_commits = 1, .statistics_committed = false};

  model[0].values[0] = 2.0F;
  CHECK(CheckModel(plan, state, model) == Reason::kNone);
  model[0].values[0] = 2.01F;
  CHECK(CheckModel(plan, state, model) == Reason::kModelJump);
}

TEST_CASE("CheckModel: forty rounds of honest averaging of the heart data pass") {
  const contracts::Plan plan = HeartPlan();
  std::vector<LoadedDataset> hospitals;
  std::vector<StatisticsResult> statistics;
  for (const char* site : {"cleveland", "budapest", "zurich-basel", "long-beach"}) {
    const auto table = ReadTable(kHeart + "dataset." + site + ".toml");
    REQUIRE(table.ok());
    hospitals.push_back(*BuildDataset(*table, plan.schema));
    statistics.push_back(*ComputeStatistics(plan, hospitals.back()));
  }
  const tests::Constants constants = tests::PoolConstants(plan, statistics);
  Model model = ZeroModel(plan);
  const Model first = model;
  model[2] = tests::Vector(contracts::kMeanTensor, constants.mean);
  model[3] = tests::Vector(contracts::kDeviationTensor, constants.deviation);

  CHECK(CheckModel(plan, {.last = first, .train_commits = 0, .statistics_committed = true},
                   model) == Reason::kNone);
  double farthest = 0;
  const Model start = model;
  for (RoundNumber round = 1; round <= 40; ++round) {
    CAPTURE(round);
    const Model before = model;
    tests::AddRound(plan, hospitals, round, model);
    CHECK(CheckModel(plan, {.last = before, .train_commits = 1, .statistics_committed = false},
                     model) == Reason::kNone);
    for (std::size_t i = 0; i < model[0].values.size(); ++i) {
      farthest = std::max(farthest,
                          std::fabs(static_cast<double>(model[0].values[i] - start[0].values[i])));
    }
  }
  CHECK(farthest > 0.1);  // the models did move
}

// The hyperplane sweep: an aggregator that sends `w = 1e6 r`, `b = -1e6 t` as "global model" to
// every site sees only exact sums, and still isolates one row between two thresholds.
class Sweep {
 public:
  // What one question answers: the sum of gradients, or nothing if a site refuses the model.
  using Question = std::function<std::optional<std::vector<double>>(double threshold)>;

  explicit Sweep(std::uint64_t seed) : random_(seed) {
    for (const std::size_t rows : {303, 293, 123, 200}) {
      std::vector<std::vector<double>>& site = sites_.emplace_back();
      for (std::size_t i = 0; i < rows; ++i) {
        std::vector<double>& row = site.emplace_back();
        for (std::size_t j = 0; j < kInputs; ++j) {
          row.push_back(std::round(Gauss() * 1000) / 1000);
        }
        row.push_back(static_cast<double>(random_.Below(2)));
      }
    }
    for (std::size_t j = 0; j < kInputs; ++j) {
      direction_.push_back(Gauss());
    }
  }

  Model ModelAt(double threshold) const {
    Model model = ZeroModel(HeartPlan());
    for (std::size_t j = 0; j < kInputs; ++j) {
      model[0].values[j] = static_cast<float>(1e6 * direction_[j]);
    }
    model[1].values[0] = static_cast<float>(-1e6 * threshold);
    return model;
  }

  // One full-batch step at each site, clipped to the norm, on the grid, weighted, added exactly.
  std::vector<double> SumOver(const Model& model) {
    ++rounds;
    std::vector<std::int64_t> total(kInputs + 1, 0);
    for (const std::vector<std::vector<double>>& rows : sites_) {
      std::vector<double> gradient(kInputs + 1, 0);
      for (const std::vector<double>& row : rows) {
        double z = model[1].values[0];
        for (std::size_t j = 0; j < kInputs; ++j) {
          z += static_cast<double>(model[0].values[j]) * row[j];
        }
        const double error = 1 / (1 + std::exp(-std::clamp(z, -700.0, 700.0))) - row[kInputs];
        for (std::size_t j = 0; j < kInputs; ++j) {
          gradient[j] += error * row[j];
        }
        gradient[kInputs] += error;
      }
      const auto n = static_cast<std::int64_t>(rows.size());
      double norm = 0;
      for (std::size_t j = 0; j <= kInputs; ++j) {
        const double delta = -kRate * gradient[j] / static_cast<double>(n);
        norm += delta * delta;
        total[j] += std::llround(delta * kScale) * n;
      }
      CHECK(norm < 1);  // a clip norm of 1 is never reached: clipping does not help
    }
    std::vector<double> sum;
    for (const std::int64_t value : total) {
      sum.push_back(-static_cast<double>(value) / kScale / kRate);
    }
    return sum;
  }

  // Halves the interval until one row lies in it. The row, or nothing if a question is refused.
  std::optional<std::vector<double>> Run(const Question& ask) {
    double low = -20;
    double high = 20;
    std::optional<std::vector<double>> below = ask(low);
    std::optional<std::vector<double>> above = ask(high);
    while (below && above && std::lround((*below)[kInputs] - (*above)[kInputs]) != 1) {
      const double middle = (low + high) / 2;
      const std::optional<std::vector<double>> half = ask(middle);
      if (!half || rounds > 60) {
        return std::nullopt;
      }
      const long up = std::lround((*below)[kInputs] - (*half)[kInputs]);
      const long down = std::lround((*half)[kInputs] - (*above)[kInputs]);
      if (up >= 1 && (down == 0 || up <= down)) {
        high = middle;
        above = half;
      } else {
        low = middle;
        below = half;
      }
    }
    if (!below || !above) {
      return std::nullopt;
    }
    std::vector<double> row;
    for (std::size_t j = 0; j < kInputs; ++j) {
      row.push_back((*below)[j] - (*above)[j]);
    }
    return row;
  }

  // Largest difference to the nearest real row.
  double Distance(const std::vector<double>& got) const {
    double nearest = std::numeric_limits<double>::infinity();
    for (const auto& rows : sites_) {
      for (const std::vector<double>& row : rows) {
        double worst = 0;
        for (std::size_t j = 0; j < kInputs; ++j) {
          worst = std::max(worst, std::fabs(row[j] - got[j]));
        }
        nearest = std::min(nearest, worst);
      }
    }
    return nearest;
  }

  int rounds = 0;

 private:
  static constexpr std::size_t kInputs = 13;
  static constexpr double kRate = 0.1;
  static constexpr double kScale = 16777216;  // 2^24

  double Uniform() { return (static_cast<double>(random_.Next64() >> 11U) + 0.5) * 0x1p-53; }
  double Gauss() {
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

  SeededRandom random_;
  std::vector<std::vector<std::vector<double>>> sites_;
  std::vector<double> direction_;
};

TEST_CASE("CheckModel: the hyperplane sweep gets nothing") {
  const contracts::Plan plan = HeartPlan();
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    Sweep sweep(seed);
    std::vector<Reason> reasons;

    const auto row = sweep.Run([&](double threshold) -> std::optional<std::vector<double>> {
      const Model model = sweep.ModelAt(threshold);
      reasons.push_back(CheckModel(
          plan, {.last = ZeroModel(plan), .train_commits = 1, .statistics_committed = false},
          model));
      return reasons.back() == Reason::kNone ? std::optional(sweep.SumOver(model)) : std::nullopt;
    });

    CHECK_FALSE(row.has_value());
    CHECK(sweep.rounds == 0);
    CHECK(reasons == std::vector<Reason>(2, Reason::kModelJump));
  }
}

TEST_CASE("CheckModel: control, without it the same sweep recovers a row") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    Sweep sweep(seed);

    const auto row = sweep.Run([&](double threshold) -> std::optional<std::vector<double>> {
      return sweep.SumOver(sweep.ModelAt(threshold));
    });

    REQUIRE(row.has_value());
    CHECK(sweep.Distance(*row) < 1e-3);
    CHECK(sweep.rounds < 30);
  }
}

}  // namespace
}  // namespace domicile::site_agent
