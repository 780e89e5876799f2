// The heart disease tables of four hospitals against numbers that an independent implementation in
// numpy computed in float64 (tests/golden/heart_golden.json; its `config` says how).
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/execute.h"
#include "tests/support/federation_in_memory.h"

namespace domicile::site_agent {
namespace {

using tests::Model;

const char* const kSites[] = {"cleveland", "budapest", "zurich-basel", "long-beach"};
const std::string kHeart = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";

const nlohmann::json& Golden() {
  static const nlohmann::json golden = [] {
    std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/heart_golden.json");
    return nlohmann::json::parse(file);
  }();
  return golden;
}

contracts::Plan HeartPlan() {
  const std::string text = ReadFile(kHeart + "job.toml", 1 << 20).value();
  return contracts::PlanFromJobFile(text, "job.toml").value();
}

const std::vector<LoadedDataset>& Hospitals() {
  static const std::vector<LoadedDataset> hospitals = [] {
    std::vector<LoadedDataset> all;
    for (const char* const site : kSites) {
      const auto table = ReadTable(kHeart + "dataset." + site + ".toml");
      REQUIRE(table.ok());
      all.push_back(*BuildDataset(*table, HeartPlan().schema));
    }
    return all;
  }();
  return hospitals;
}

LoadedDataset Everything() {
  LoadedDataset all = Hospitals()[0];
  for (std::size_t i = 1; i < Hospitals().size(); ++i) {
    const auto append = [](const Rows& from, Rows& to) {
      to.inputs.insert(to.inputs.end(), from.inputs.begin(), from.inputs.end());
      to.missing.insert(to.missing.end(), from.missing.begin(), from.missing.end());
      to.labels.insert(to.labels.end(), from.labels.begin(), from.labels.end());
    };
    append(Hospitals()[i].training, all.training);
    append(Hospitals()[i].test, all.test);
  }
  return all;
}

tests::Constants HeartConstants() {
  const contracts::Plan plan = HeartPlan();
  std::vector<StatisticsResult> sites;
  for (const LoadedDataset& hospital : Hospitals()) {
    sites.push_back(*ComputeStatistics(plan, hospital));
  }
  return tests::PoolConstants(plan, sites);
}

Model FirstModel(const contracts::Plan& plan) {
  Model model = models::TravellingTensors(plan, models::FirstParameters(plan, {}).value());
  model.push_back(tests::Vector("normalisation.mean", HeartConstants().mean));
  model.push_back(tests::Vector("normalisation.deviation", HeartConstants().deviation));
  return model;
}

const Model& FederatedModel() {
  static const Model model = [] {
    const contracts::Plan plan = HeartPlan();
    Model m = FirstModel(plan);
    for (RoundNumber round = 1; round <= 40; ++round) {
      tests::AddRound(plan, Hospitals(), round, m);
    }
    return m;
  }();
  return model;
}

double Worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::fabs(a[i] - b[i]));
  }
  return worst;
}

double WorstAgainst(const Model& model, const char* golden) {
  return Worst(tests::Flatten(HeartPlan(), model), Golden().at(golden).get<std::vector<double>>());
}

double PooledLogLoss(const Model& model) {
  std::int64_t loss = 0;
  std::uint64_t examples = 0;
  for (const LoadedDataset& hospital : Hospitals()) {
    const auto result = *Evaluate(HeartPlan(), hospital, model);
    loss += result.loss_sum;
    examples += result.examples;
  }
  CHECK(examples == 306);
  return kLossUnit * static_cast<double>(loss) / static_cast<double>(examples);
}

TEST_CASE("Heart: the tables give the rows, inputs and classes of the reference") {
  for (std::size_t i = 0; i < 4; ++i) {
    const LoadedDataset& hospital = Hospitals()[i];
    CAPTURE(kSites[i]);
    CHECK(hospital.training.NumRows() == Golden().at("train_rows").at(kSites[i]));
    CHECK(hospital.test.NumRows() == Golden().at("test_rows").at(kSites[i]));
    const auto count = [](const Rows& rows) {
      return std::count(rows.labels.begin(), rows.labels.end(), 1U);
    };
    CHECK(count(hospital.training) == Golden().at("train_pos").at(kSites[i]));
    CHECK(count(hospital.test) == Golden().at("test_pos").at(kSites[i]));
    CHECK(hospital.counts.dropped == 0);
  }
  // Not measured: cholesterol at every record of Zurich and Basel.
  CHECK(Hospitals()[2].missing_counts[2] == 123);
}

TEST_CASE("Heart: mean and deviation from grid integers are the federated ones to 1e-9") {
  const tests::Constants constants = HeartConstants();
  for (std::size_t input = 0; input < 13; ++input) {
    CAPTURE(input);
    const double mean = Golden().at("mean").at(input).get<double>();
    const double deviation = Golden().at("sd").at(input).get<double>();
    CHECK(std::fabs(constants.mean[input] / mean - 1) < 1e-9);
    CHECK(std::fabs(constants.deviation[input] / deviation - 1) < 1e-9);
  }
}

TEST_CASE("Heart: federated weights and losses follow the reference round by round") {
  const contracts::Plan plan = HeartPlan();
  Model model = FirstModel(plan);
  for (RoundNumber round = 1; round <= 10; ++round) {
    tests::AddRound(plan, Hospitals(), round, model);
    CAPTURE(round);
    const double want = Golden().at("test_logloss_by_round").at(round - 1).get<double>();
    CHECK(std::fabs(PooledLogLoss(model) - want) < 1e-5);
    if (round == 1) {
      CHECK(WorstAgainst(model, "fedavg_round_1") < 2e-5);
    }
    if (round == 5) {
      CHECK(WorstAgainst(model, "fedavg_round_5") < 2e-5);
    }
  }
  CHECK(WorstAgainst(FederatedModel(), "fedavg") < 2e-5);
}

TEST_CASE("Heart: the federated model has the accuracy and AUC of the reference") {
  const contracts::Plan plan = HeartPlan();
  const nlohmann::json& want = Golden().at("results").at("FedAvg LR");
  std::uint64_t correct = 0;
  std::vector<std::vector<std::int64_t>> histogram(2, std::vector<std::int64_t>(1000, 0));
  for (const LoadedDataset& hospital : Hospitals()) {
    const auto result = *Evaluate(plan, hospital, FederatedModel());
    correct += result.correct;
    for (std::size_t label = 0; label < 2; ++label) {
      for (std::size_t bin = 0; bin < 1000; ++bin) {
        histogram[label][bin] += result.histogram[label][bin];
      }
    }
  }
  CHECK(correct == 249);  // 0.813725 of 306
  CHECK(std::fabs(AucFromHistogram(histogram[0], histogram[1]).value() -
                  want.at("auc").get<double>()) < 1e-3);

  const LoadedDataset all = Everything();
  const auto scored = *Score(plan, all, FederatedModel());
  const Metrics metrics = Measure(scored.probabilities, scored.labels, 2);
  CHECK(metrics.accuracy == doctest::Approx(want.at("acc").get<double>()).epsilon(1e-5));
  CHECK(metrics.auc.value() == doctest::Approx(want.at("auc").get<double>()).epsilon(1e-5));
  CHECK(std::fabs(metrics.log_loss - want.at("ll").get<double>()) < 1e-5);
  CHECK(metrics.majority == doctest::Approx(175.0 / 306));
}

TEST_CASE("Heart: with one local step a round, federated averaging is centralised training") {
  contracts::Plan plan = HeartPlan();
  plan.training.local_steps = 1;
  Model federated = FirstModel(plan);
  for (RoundNumber round = 1; round <= 400; ++round) {
    tests::AddRound(plan, Hospitals(), round, federated);
  }
  plan.training.local_steps = 400;
  Model central = FirstModel(plan);
  tests::AddRound(plan, {Everything()}, 1, central);

  CHECK(Worst(tests::Flatten(plan, federated), tests::Flatten(plan, central)) < 2e-6);
  CHECK(WorstAgainst(central, "central") < 2e-5);
  CHECK(WorstAgainst(federated, "fedsgd") < 2e-5);
}

TEST_CASE("Heart: own intercepts are those of the reference, and raise accuracy to 0.843") {
  const contracts::Plan plan = HeartPlan();
  std::vector<double> probabilities;
  std::vector<std::uint32_t> labels;
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(kSites[i]);
    const auto refit = *RefitIntercept(plan, Hospitals()[i], FederatedModel());
    REQUIRE(refit.bias.size() == 1);
    CHECK(std::fabs(refit.bias[0] - Golden().at("own_intercept").at(i).get<double>()) < 2e-5);
    probabilities.insert(probabilities.end(), refit.test.probabilities.begin(),
                         refit.test.probabilities.end());
    labels.insert(labels.end(), refit.test.labels.begin(), refit.test.labels.end());
  }
  const nlohmann::json& want = Golden().at("results").at("FedAvg LR + own intercept");
  const Metrics metrics = Measure(probabilities, labels, 2);
  CHECK(metrics.accuracy == doctest::Approx(want.at("acc").get<double>()).epsilon(1e-5));
  CHECK(metrics.auc.value() == doctest::Approx(want.at("auc").get<double>()).epsilon(1e-5));
  CHECK(std::fabs(metrics.log_loss - want.at("ll").get<double>()) < 1e-5);
}

TEST_CASE("Heart: mirrored replicas train to the same weights as one device") {
  const contracts::Plan plan = HeartPlan();
  TrainOptions mirrored;
  mirrored.strategy = {.kind = models::StrategyKind::kMirrored, .threads = 1, .replicas = 3};
  Model model = FirstModel(plan);

  tests::AddRound(plan, Hospitals(), 1, model, mirrored);

  CHECK(WorstAgainst(model, "fedavg_round_1") < 2e-5);
}

TEST_CASE("Heart: an MLP follows its reference too, from the same first weights") {
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/heart_mlp_golden.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  contracts::Plan plan = HeartPlan();
  plan.model.kind = contracts::ModelKind::kMlp;
  plan.model.hidden = {8};
  plan.model.activation = contracts::Activation::kTanh;
  const auto start = golden.at("start").get<std::vector<float>>();
  Model model = models::TravellingTensors(plan, start);
  model.push_back(tests::Vector("normalisation.mean", HeartConstants().mean));
  model.push_back(tests::Vector("normalisation.deviation", HeartConstants().deviation));
  const auto worst = [&](const Model& m, const char* name) {
    return Worst(tests::Flatten(plan, m), golden.at(name).get<std::vector<double>>());
  };

  Model federated = model;
  for (RoundNumber round = 1; round <= 40; ++round) {
    tests::AddRound(plan, Hospitals(), round, federated);
    if (round == 1) {
      CHECK(worst(federated, "fedavg_round_1") < 2e-5);
    }
  }
  CHECK(worst(federated, "fedavg") < 1e-4);
  std::uint64_t correct = 0;
  std::int64_t loss = 0;
  for (const LoadedDataset& hospital : Hospitals()) {
    const auto result = *Evaluate(plan, hospital, federated);
    correct += result.correct;
    loss += result.loss_sum;
  }
  CHECK(correct == golden.at("fedavg_correct"));
  CHECK(std::fabs(kLossUnit * static_cast<double>(loss) / 306 -
                  golden.at("fedavg_log_loss").get<double>()) < 1e-5);

  plan.training.local_steps = 400;
  tests::AddRound(plan, {Everything()}, 1, model);
  CHECK(worst(model, "central") < 1e-4);
}

}  // namespace
}  // namespace domicile::site_agent
