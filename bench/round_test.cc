#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/demo/child.h"

namespace domicile::bench {
namespace {

constexpr const char* kPrograms = DOMICILE_BINARY_DIR "/bin/";

// What `domicile bench ...` prints. Its standard error goes nowhere: a test reads no progress.
nlohmann::json Facts(std::vector<std::string> words) {
  words.insert(words.begin(), std::string(kPrograms) + "domicile");
  const StatusOr<std::string> out = cli::RunToEnd(words, "/dev/null");
  REQUIRE_MESSAGE(out.ok(), ToString(out.status()));
  return nlohmann::json::parse(*out);
}

TEST_CASE("domicile bench round: real programs commit rounds, and every key is a number") {
  const nlohmann::json facts =
      Facts({"bench", "round", "--params", "1000", "--sites", "3", "--rounds", "2", "--json"});

  for (const char* key :
       {"seconds_per_round", "slowest_round_seconds", "floor_seconds", "ratio_to_floor",
        "cpu_seconds_per_round", "aggregator_cpu_seconds_per_round", "agents_cpu_seconds_per_round",
        "trainers_cpu_seconds_per_round", "floor_cpu_seconds", "cpu_ratio_to_floor",
        "floor_file_seconds", "aggregator_peak_mb", "site_peak_mb", "trainer_peak_mb"}) {
    CAPTURE(key);
    REQUIRE(facts.contains(key));
    CHECK(facts.at(key).is_number());
  }
  CHECK(facts.at("parameters") == 1000);
  CHECK(facts.at("sites") == 3);
  CHECK(facts.at("rounds") == 2);
  CHECK(facts.at("wire_bytes_per_round") == 2 * 3 * 4 * 1000);
  CHECK(facts.at("seconds_per_round") > 0);
  CHECK(facts.at("aggregator_peak_mb") > 1);
}

TEST_CASE("domicile bench training: examples a second of each model, beside the matrix product") {
  // Not of minilm, whose steps take seconds.
  const nlohmann::json facts = Facts({"bench", "training", "--seconds", "0.05", "--model",
                                      "logistic", "--model", "mlp", "--model", "cnn", "--json"});

  CHECK(facts.at("gemm_gflops") > 0);
  for (const char* model : {"logistic", "mlp", "cnn"}) {
    CAPTURE(model);
    CHECK(facts.at(model).at("examples_per_second_1_thread") > 0);
    CHECK(facts.at(model).at("examples_per_second_2_threads") > 0);
    CHECK(facts.at(model).at("gemm_share_1_thread") > 0);
    CHECK(facts.at(model).at("gemm_share_2_threads") > 0);
  }
  CHECK_FALSE(facts.contains("minilm"));
}

TEST_CASE("domicile bench training: on a device of a plug-in, with a batch of one's own") {
  const nlohmann::json facts =
      Facts({"bench", "training", "--seconds", "0.05", "--model", "mlp", "--batch", "3", "--device",
             "cuda", "--products", "bfloat16", "--plugin",
             DOMICILE_BINARY_DIR "/lib/rehearsal/librehearsal.so", "--json"});
  CHECK(facts.at("device") == "cuda");
  CHECK(facts.at("mlp").at("batch") == 3);
  CHECK(facts.at("mlp").at("examples_per_second") > 0);
}

TEST_CASE("domicile bench training: what a strategy reaches, and where its time goes") {
  const nlohmann::json facts =
      Facts({"bench", "training", "--seconds", "0.05", "--model", "mlp", "--batch", "10",
             "--replicas", "3", "--strategy", "mirrored", "--strategy", "parameter_server",
             "--strategy", "multi_worker_mirrored", "--json"});
  const nlohmann::json& strategies = facts.at("strategies");
  REQUIRE(strategies.size() == 3);
  for (const nlohmann::json& strategy : strategies) {
    CHECK(strategy.at("model") == "mlp");
    CHECK(strategy.at("replicas") == 3);
    CHECK(strategy.at("examples_per_second") > 0);
    CHECK(strategy.at("state_mb") > 2.8);  // three gradients of 0.94 MB at least
    for (const char* share : {"stall_share", "communication_share"}) {
      CHECK(strategy.at(share) >= 0);
      CHECK(strategy.at(share) <= 1);
    }
  }
  CHECK(strategies[0].at("strategy") == "mirrored");
  CHECK(strategies[0].at("greatest_staleness") == 0);
  CHECK(strategies[1].at("greatest_staleness") <= 6);
  CHECK(strategies[2].at("strategy") == "multi_worker_mirrored");
  CHECK(strategies[2].at("communication_share") > 0);
  CHECK(strategies[2].at("exchange_share") > 0);
}

TEST_CASE("domicile bench policy: what a decision and the question of reach cost, as numbers") {
  const nlohmann::json facts =
      Facts({"bench", "policy", "--sites", "7", "--seconds", "0.02", "--json"});

  for (const char* key :
       {"decide_microseconds", "decide_denied_microseconds", "answer_microseconds",
        "meet_microseconds", "reach_seconds", "reach_found_seconds", "reach_floor_seconds"}) {
    CAPTURE(key);
    REQUIRE(facts.contains(key));
    CHECK(facts.at(key) > 0);
  }
  CHECK(facts.at("sites") == 7);
  CHECK(facts.at("sites_that_reach") > 0);
  CHECK(facts.at("covered").at("places") >= 249);
}

}  // namespace
}  // namespace domicile::bench
