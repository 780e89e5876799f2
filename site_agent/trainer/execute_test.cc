#include "site_agent/trainer/execute.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "models/plans/plan_model.h"
#include "tests/support/federation_in_memory.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;
using tests::Model;

contracts::Plan HeartPlan() {
  const std::string text =
      ReadFile(DOMICILE_SOURCE_DIR "/deploy/examples/heart/job.toml", 1 << 20).value();
  return contracts::PlanFromJobFile(text, "job.toml").value();
}

// A plan over number columns f1, f2, ... with the given classes; no normalisation.
contracts::Plan SmallPlan(std::size_t num_inputs, std::vector<std::string> classes) {
  contracts::Plan plan = HeartPlan();
  plan.schema.features.clear();
  for (std::size_t i = 0; i < num_inputs; ++i) {
    contracts::Feature feature;
    feature.column = "f" + std::to_string(i + 1);
    feature.kind = contracts::FeatureKind::kNumber;
    plan.schema.features.push_back(std::move(feature));
  }
  plan.schema.label = {};
  plan.schema.label.column = "label";
  plan.schema.label.classes = std::move(classes);
  plan.normalisation = {};
  plan.training.l2 = 0;
  return plan;
}

LoadedDataset SmallData(const contracts::Plan& plan, const std::vector<double>& inputs,
                        std::vector<std::uint32_t> labels) {
  LoadedDataset data;
  data.alias = DatasetAlias::Parse("tumours").value();
  data.input_names = plan.schema.InputNames();
  data.num_classes = plan.schema.label.NumClasses();
  data.training.num_inputs = plan.NumInputs();
  data.training.inputs = inputs;
  data.training.missing.assign(inputs.size(), 0);
  data.training.labels = std::move(labels);
  data.test.num_inputs = plan.NumInputs();
  return data;
}

Model FirstModel(const contracts::Plan& plan) {
  return models::TravellingTensors(plan, models::FirstParameters(plan, {}).value());
}

double Worst(const std::vector<float>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - want[i]));
  }
  return worst;
}

// A table of `rows` rows of two classes that a line separates badly.
LoadedDataset Synthetic(const contracts::Plan& plan, std::size_t rows) {
  std::vector<double> inputs;
  std::vector<std::uint32_t> labels;
  for (std::size_t row = 0; row < rows; ++row) {
    inputs.push_back(static_cast<double>(row * 7 % 11) / 11 - 0.5);
    inputs.push_back(static_cast<double>(row * 5 % 13) / 13 - 0.5);
    labels.push_back(row * 3 % 7 < 3 ? 1 : 0);
  }
  return SmallData(plan, inputs, labels);
}

struct Tumours {
  contracts::Plan plan;
  std::vector<LoadedDataset> sites;
};

Tumours MakeTumours() {
  Tumours t = {SmallPlan(2, {"benign", "malignant", "unclear"}), {}};
  t.plan.training.learning_rate = 0.3;
  t.plan.training.local_steps = 1;
  t.sites.push_back(SmallData(t.plan, {1, 0, 2, 1, 0, 2, 1, 3}, {0, 0, 1, 1}));
  t.sites.push_back(SmallData(t.plan, {3, 1, 1, 1}, {2, 2}));
  t.sites.push_back(SmallData(t.plan, {0, 0, 2, 2, 4, 0, 1, 1, 3, 3, 2, 0}, {0, 1, 2, 0, 1, 2}));
  return t;
}

TEST_CASE("Train: a site with one class trains the classes of the job (C09)") {
  const Tumours t = MakeTumours();
  Model model = FirstModel(t.plan);
  REQUIRE(model[0].shape == std::vector<std::uint64_t>{2, 3});

  const auto only_unclear = *Train(t.plan, t.sites[1], model, 1);
  CHECK(Worst(only_unclear.delta[1].values, {-0.1, -0.1, 0.2}) < 1e-6);

  tests::AddRound(t.plan, t.sites, 1, model);
  CHECK(Worst(model[0].values, {-0.066667, -0.016667, 0.083333, -0.066667, 0.133333, -0.066667}) <
        1e-6);
  CHECK(Worst(model[1].values, {0, 0, 0}) < 1e-6);
  for (RoundNumber round = 2; round <= 5; ++round) {
    tests::AddRound(t.plan, t.sites, round, model);
  }
  CHECK(Worst(model[0].values, {-0.119065, -0.154004, 0.273069, -0.170387, 0.451889, -0.281502}) <
        1e-6);
  CHECK(Worst(model[1].values, {0.101192, -0.071646, -0.029545}) < 1e-6);
}

TEST_CASE("Evaluate: a class without rows has no counts, and no rows give zeros (C09)") {
  Tumours t = MakeTumours();
  const Model model = FirstModel(t.plan);
  const auto none = *Evaluate(t.plan, t.sites[1], model);
  CHECK(none.examples == 0);
  CHECK(none.loss_sum == 0);

  t.sites[1].test = t.sites[1].training;
  const auto unclear = *Evaluate(t.plan, t.sites[1], model);

  CHECK(unclear.examples == 2);
  CHECK(unclear.class_counts == std::vector<std::int64_t>{0, 0, 2});
  CHECK(unclear.correct == 0);  // equal probabilities name the first class
  CHECK(unclear.loss_sum == static_cast<std::int64_t>(std::llround(2e6 * std::log(3.0))));
  REQUIRE(unclear.histogram.size() == 3);
  REQUIRE(unclear.histogram[2].size() == t.plan.evaluation.bins);
  CHECK(unclear.histogram[2][t.plan.evaluation.bins / 3] == 2);  // each has probability 1/3
}

TEST_CASE("Train: reports the loss of the model it received, without L2") {
  contracts::Plan plan = SmallPlan(2, {"no", "yes"});
  plan.training.l2 = 5;
  const LoadedDataset data = Synthetic(plan, 40);
  const auto result = *Train(plan, data, FirstModel(plan), 1);

  CHECK(result.examples == 40);
  CHECK(result.rows == 40);
  CHECK(result.loss_sum == static_cast<std::int64_t>(std::llround(40e6 * std::log(2.0))));
}

TEST_CASE("Train: counts the rows that its steps used, and keeps a short last batch (C41)") {
  const struct {
    std::size_t rows;
    std::uint32_t steps;
    std::uint64_t used;
  } cases[] = {{64, 1, 32}, {64, 2, 64}, {64, 5, 64}, {65, 2, 64}, {65, 3, 65}, {3, 1, 3}};
  contracts::Plan plan = SmallPlan(2, {"no", "yes"});
  plan.training.batch = 32;
  plan.training.last_batch = contracts::LastBatch::kKeep;
  for (const auto& c : cases) {
    CAPTURE(c.rows);
    CAPTURE(c.steps);
    plan.training.local_steps = c.steps;
    const auto result = *Train(plan, Synthetic(plan, c.rows), FirstModel(plan), 1);
    CHECK(result.rows == c.used);
    CHECK(result.examples == c.rows);
  }
}

TEST_CASE("Train: batches depend on seed and round alone, and one batch of all is a full batch") {
  contracts::Plan plan = SmallPlan(2, {"no", "yes"});
  plan.training.batch = 8;
  plan.training.last_batch = contracts::LastBatch::kKeep;
  plan.training.shuffle = true;
  plan.training.local_steps = 5;
  const LoadedDataset data = Synthetic(plan, 40);
  const Model model = FirstModel(plan);
  const auto delta = [&](RoundNumber round, std::size_t threads) {
    TrainOptions options;
    options.strategy.threads = threads;
    return Train(plan, data, model, round, options)->delta;
  };
  CHECK(delta(1, 1) == delta(1, 1));
  CHECK(delta(1, 1) == delta(1, 2));
  CHECK(delta(1, 1) != delta(2, 1));
  const auto before = delta(1, 1);
  plan.training.shuffle_seed = 1;
  CHECK(delta(1, 1) != before);

  plan.training.batch = 40;
  plan.training.local_steps = 1;
  const auto as_batch = delta(1, 1);
  plan.training.batch = 0;
  const auto as_full = delta(1, 1);
  const std::vector<double> full(as_full[0].values.begin(), as_full[0].values.end());
  CHECK(Worst(as_batch[0].values, full) < 1e-7);
}

TEST_CASE("Train: reports progress in whole per cent and stops when told") {
  contracts::Plan plan = SmallPlan(2, {"no", "yes"});
  plan.training.local_steps = 4;
  const LoadedDataset data = Synthetic(plan, 10);
  std::vector<std::uint32_t> seen;
  TrainOptions options;
  options.progress = [&seen](const TaskProgress& told) { seen.push_back(told.percent); };
  CHECK(Train(plan, data, FirstModel(plan), 1, options).ok());
  CHECK(seen == std::vector<std::uint32_t>{25, 50, 75, 100});

  // With a clock it also says how fast, at what loss, and what each replica did.
  const SystemClock clock;
  options.clock = &clock;
  options.strategy = {.kind = models::StrategyKind::kMirrored, .replicas = 2};
  std::optional<TrainFigures> last;
  options.progress = [&last](const TaskProgress& told) { last = told.figures; };
  CHECK(Train(plan, data, FirstModel(plan), 1, options).ok());
  REQUIRE(last.has_value());
  CHECK(last->examples_per_second > 0);
  CHECK(last->loss_micro.value_or(-1) > 0);
  CHECK(last->stall_permille == 0);  // every step has all rows: there is no input to wait for
  REQUIRE(last->replicas.size() == 2);
  CHECK(last->replicas[1].state_bytes > 0);
  options.strategy = {};
  options.clock = nullptr;

  std::stop_source stop;
  options.stop = stop.get_token();
  options.progress = [&stop](const TaskProgress& /*told*/) { stop.request_stop(); };
  const auto cancelled = Train(plan, data, FirstModel(plan), 1, options);
  REQUIRE_FALSE(cancelled.ok());
  CHECK(cancelled.TheFault().Travels().reason == Reason::kCancelled);
}

TEST_CASE("Train: what cannot be trained is a fault with a code (C37)") {
  const contracts::Plan plan = SmallPlan(2, {"no", "yes"});
  const LoadedDataset data = Synthetic(plan, 20);
  const Model model = FirstModel(plan);
  const auto reason = [](const contracts::Plan& p, const LoadedDataset& d, const Model& m) {
    const auto result = Train(p, d, m, 1);
    return result.ok() ? Reason::kNone : result.TheFault().Travels().reason;
  };
  CHECK(reason(plan, data, model) == Reason::kNone);

  CHECK(reason(plan, SmallData(plan, {}, {}), model) == Reason::kNoExamples);
  contracts::Plan odd = plan;
  odd.training.learning_rate = 1e30;
  odd.training.l2 = 1;
  for (const std::uint32_t batch : {0U, 7U}) {
    odd.training.batch = batch;
    CHECK(reason(odd, data, model) == Reason::kNotFinite);
  }
  odd = plan;
  odd.model.kind = contracts::ModelKind::kRaw;
  CHECK(reason(odd, data, model) == Reason::kModelNotAllowed);
  CHECK(reason(SmallPlan(3, {"no", "yes"}), data, FirstModel(SmallPlan(3, {"no", "yes"}))) ==
        Reason::kModelShape);
  CHECK(reason(plan, data, {model[0]}) == Reason::kModelShape);
  Model bad = model;
  bad[0].values[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(reason(plan, data, bad) == Reason::kModelNotFinite);
  bad = model;
  bad.push_back(tests::Vector("normalisation.deviation", {1, 0}));
  CHECK(reason(plan, data, bad) == Reason::kNormalisation);
  bad.back() = tests::Vector("normalisation.deviation", {1});
  CHECK(reason(plan, data, bad) == Reason::kNormalisation);
}

TEST_CASE("ComputeStatistics: sums training rows that are not missing, on the plan's grid") {
  contracts::Plan plan = SmallPlan(2, {"no", "yes"});
  plan.normalisation = {.enabled = true,
                        .deviation_floor = 1e-3,
                        .scale_bits = 2,
                        .max_rows = 3,
                        .offsets = {10, 0},
                        .ranges = {5, 1}};
  LoadedDataset data = SmallData(plan, {11, 0.1, 8.5, 0, 15, 0.3}, {0, 1, 0});
  data.training.missing[3] = 1;

  const auto sums = *ComputeStatistics(plan, data);

  CHECK(sums.rows == 3);
  CHECK(sums.counts == std::vector<std::int64_t>{3, 2});
  // 1 - 1.5 + 5 = 4.5 and 1 + 2.25 + 25 = 28.25 in quarters; 0.4 and 0.1 round once, at the end.
  CHECK(sums.sums == std::vector<std::int64_t>{18, 2});
  CHECK(sums.squares == std::vector<std::int64_t>{113, 0});
  CHECK(sums.Flat() == std::vector<std::int64_t>{3, 2, 18, 2, 113, 0});

  data.training.inputs[0] = 15.5;
  data.training.inputs[4] = -1e300;
  const auto beyond = ComputeStatistics(plan, data);
  REQUIRE_FALSE(beyond.ok());
  CHECK(beyond.TheFault().Travels().reason == Reason::kOutOfRange);
  CHECK(beyond.TheFault().Travels().rows_refused == 2);
  CHECK(beyond.TheFault().LocalLines()[0].find("15.5") == std::string::npos);
  data.training.inputs[0] = 11;
  data.training.inputs[4] = 15;
  plan.normalisation.max_rows = 2;
  CHECK(ComputeStatistics(plan, data).TheFault().Travels().reason == Reason::kOutOfRange);
  plan.normalisation.max_rows = 3;
  CHECK(ComputeStatistics(plan, data).ok());
  plan.normalisation.enabled = false;
  CHECK(ComputeStatistics(plan, data).TheFault().Travels().reason == Reason::kNormalisation);
}

TEST_CASE("RefitIntercept: moves only the bias, to the site's own rate of positives") {
  contracts::Plan plan = SmallPlan(1, {"no", "yes"});
  plan.training.learning_rate = 1;
  LoadedDataset data = SmallData(plan, {0, 0, 0, 0}, {1, 1, 1, 0});
  data.test = data.training;
  Model model = FirstModel(plan);

  const auto refit = *RefitIntercept(plan, data, model);

  CHECK(refit.bias[0] == doctest::Approx(std::log(3.0)).epsilon(1e-3));
  CHECK(refit.test.probabilities[1] == doctest::Approx(0.75).epsilon(1e-3));
}

}  // namespace
}  // namespace domicile::site_agent
