#include "site_agent/trainer/local.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "models/safetensors.h"
#include "tests/support/federation_in_memory.h"

namespace domicile::site_agent {
namespace {

const std::string kHeart = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";

LocalRequest HeartRequest() {
  LocalRequest request;
  request.plan_file = kHeart + "job.toml";
  for (const char* const site : {"cleveland", "budapest", "zurich-basel", "long-beach"}) {
    request.datasets.push_back(kHeart + "dataset." + site + ".toml");
  }
  return request;
}

nlohmann::json Golden() {
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/heart_golden.json");
  return nlohmann::json::parse(file);
}

double Number(const Json& metrics, std::string_view key) {
  const Json* const value = metrics.Find(key);
  REQUIRE(value != nullptr);
  return ParseDouble(*value->TryString()).value();
}

const Json& ModelNamed(const Json& report, std::string_view name) {
  for (const Json& model : *report.Find("models")->TryArray()) {
    if (*model.Find("name")->TryString() == name) {
      return model;
    }
  }
  FAIL("no model of that name: ", std::string(name));
  return report;
}

void CheckMetrics(const Json& got, const nlohmann::json& want, const std::string& suffix) {
  CHECK(std::fabs(Number(got, "accuracy") - want.at("acc" + suffix).get<double>()) < 1e-5);
  CHECK(std::fabs(Number(got, "log_loss") - want.at("ll" + suffix).get<double>()) < 2e-5);
  CHECK(std::fabs(Number(got, "auc") - want.at("auc" + suffix).get<double>()) < 1e-5);
}

// The federated weights of the reference as a model file in a folder of its own.
class ModelFile {
 public:
  ModelFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "domicile-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    const auto weights = Golden().at("fedavg").get<std::vector<double>>();
    const std::vector<models::NamedTensor> model = {
        tests::Vector("weight", {weights.begin(), weights.end() - 1}),
        tests::Vector("bias", {weights.back()}),
        tests::Vector("normalisation.mean", Golden().at("mean").get<std::vector<double>>()),
        tests::Vector("normalisation.deviation", Golden().at("sd").get<std::vector<double>>())};
    REQUIRE(WriteFileDurably(Path(), models::PrintSafetensors(model)).ok());
  }
  ~ModelFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  std::string Path() const { return folder_ + "/model.safetensors"; }

 private:
  std::string folder_;
};

TEST_CASE("RunLocal: compares models on the heart data as the reference does") {
  const ModelFile federated;
  LocalRequest request = HeartRequest();
  request.model_file = federated.Path();

  const StatusOr<Json> report = RunLocal(request);

  REQUIRE_MESSAGE(report.ok(), ToString(report.status()));
  const nlohmann::json golden = Golden().at("results");
  const std::map<std::string, std::string> names = {
      {"local:cleveland", "local:cleveland"},
      {"local:budapest", "local:budapest"},
      {"local:zurich-basel", "local:zurich-basel"},
      {"local:long-beach", "local:long-beach"},
      {"local at home", "local, own site"},
      {"centralised", "central LR"},
      {"federated", "FedAvg LR"},
      {"federated, own intercept", "FedAvg LR + own intercept"}};
  CHECK(report->Find("models")->TryArray()->size() == names.size());
  for (const auto& name : names) {
    const std::string& ours = name.first;
    const std::string& theirs = name.second;
    CAPTURE(ours);
    const Json& model = ModelNamed(*report, ours);
    CheckMetrics(*model.Find("all"), golden.at(theirs), "");
    CHECK(*model.Find("all")->Find("examples")->TryInt() == 306);
    for (const char* const site : {"cleveland", "budapest", "zurich-basel", "long-beach"}) {
      CAPTURE(site);
      CheckMetrics(*model.Find("sites")->Find(site), golden.at(theirs), ":" + std::string(site));
    }
  }
  CHECK(Number(*ModelNamed(*report, "federated").Find("sites")->Find("zurich-basel"), "majority") ==
        doctest::Approx(38.0 / 41).epsilon(1e-5));
  CHECK(Number(*report, "max_weight_difference") ==
        doctest::Approx(0.0520712).epsilon(1e-3));  // of chest pain 1, `central` - `fedavg`
  const Json& bias = *report->Find("own_intercepts")->Find("zurich-basel");
  CHECK(ParseDouble(*bias.TryArray()->front().TryString()).value() ==
        doctest::Approx(2.202768).epsilon(1e-4));
}

TEST_CASE("RunLocal: without a model there are only the models that it trains") {
  LocalRequest request = HeartRequest();
  request.datasets = {"here=" + request.datasets[0], "there=" + request.datasets[1]};

  const Json report = RunLocal(request).value();

  CHECK(report.Find("models")->TryArray()->size() == 4);
  CHECK(report.Find("own_intercepts") == nullptr);
  CHECK(*report.Find("sites")->TryArray()->front().Find("name")->TryString() == "here");
  CHECK(*report.Find("sites")->TryArray()->front().Find("training_rows")->TryInt() == 202);
}

TEST_CASE("RunLocal: says what is wrong with what it was given") {
  LocalRequest request = HeartRequest();
  request.plan_file = "/nonexistent/job.toml";
  CHECK(RunLocal(request).status().code() == StatusCode::kNotFound);
  request = HeartRequest();
  request.datasets.push_back(request.datasets[0]);
  CHECK(Message(RunLocal(request).status()).find("NAME=FILE") != std::string_view::npos);
  request.datasets = {"/nonexistent/dataset.toml"};
  CHECK(Message(RunLocal(request).status()).find("/nonexistent/dataset.toml") !=
        std::string_view::npos);
  request.datasets.clear();
  CHECK_FALSE(RunLocal(request).ok());
  request = HeartRequest();
  request.model_file = kHeart + "job.toml";
  CHECK(Message(RunLocal(request).status()).find("safetensors") != std::string_view::npos);
}

}  // namespace
}  // namespace domicile::site_agent
