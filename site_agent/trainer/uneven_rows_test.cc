// C41: sites of 64, 65 and 3 rows with batches of 32; the figures were worked out by another
// program.
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "contracts/dataset.h"
#include "contracts/testing_jobs.h"
#include "site_agent/datasets/dataset.h"
#include "tests/support/federation_in_memory.h"

namespace domicile::site_agent {
namespace {

using contracts::Plan;

// y = w x without an intercept, one pass a round, rows as they come.
Plan PlanWith(std::string_view last_batch) {
  return contracts::MustPlan(contracts::JobOf(
      "[[feature]]\ncolumn = \"x\"\nkind = \"number\"\n", "kind = \"number\"\n",
      "kind = \"linear\"\n",
      "optimizer = \"sgd\"\nlearning_rate = 0.1\nlocal_epochs = 1\nbatch = 32\nshuffle = false\n"
      "frozen = [\"bias\"]\nlast_batch = \"" +
          std::string(last_batch) + "\"\n"));
}

LoadedDataset Site(const Plan& plan, const std::string& name) {
  const std::string folder = DOMICILE_SOURCE_DIR "/tests/golden/cases/C41/";
  const auto description = contracts::ParseDatasetDescription(
      "[dataset]\nalias = \"toy\"\nversion = \"1\"\nfiles = [\"" + name +
          ".csv\"]\n[[column]]\nname = \"label\"\nlocal = \"y\"\n",
      folder + "dataset.toml");
  REQUIRE_MESSAGE(description.ok(), Message(description.status()));
  const auto loaded = LoadDataset(*description, plan.schema);
  REQUIRE(loaded.ok());
  return *loaded;
}

struct Expected {
  const char* site;
  std::uint64_t examples;
  double weight;
};

void CheckRound(std::string_view last_batch, const std::array<Expected, 3>& sites, double global) {
  const Plan plan = PlanWith(last_batch);
  const tests::Model zero = {tests::Vector("weight", {0})};
  REQUIRE(plan.Tensors().size() == 1);  // the intercept is never trained
  double sum = 0;
  double examples = 0;
  for (const Expected& expected : sites) {
    CAPTURE(expected.site);
    const auto trained = Train(plan, Site(plan, expected.site), zero, 1);
    if (expected.examples == 0) {
      REQUIRE_FALSE(trained.ok());
      CHECK(trained.TheFault().Travels().reason == policy::Reason::kNoExamples);
      CHECK(trained.TheFault().LocalLines()[0].find("do not fill a batch") != std::string::npos);
      continue;
    }
    REQUIRE(trained.ok());
    CHECK(trained->rows == expected.examples);
    CHECK(trained->delta[0].values[0] == doctest::Approx(expected.weight).epsilon(1e-5));
    sum += static_cast<double>(trained->rows) * static_cast<double>(trained->delta[0].values[0]);
    examples += static_cast<double>(trained->rows);
  }
  CHECK(sum / examples == doctest::Approx(global).epsilon(1e-5));
}

TEST_CASE("Train: short last batches that are kept are smaller steps of more weight (C41)") {
  CheckRound("keep",
             {{{"site_a", 64, 0.261890}, {"site_b", 65, 0.493472}, {"site_c", 3, 0.098438}}},
             0.372212);
}

TEST_CASE("Train: short last batches that are dropped count for nothing (C41)") {
  CheckRound("drop", {{{"site_a", 64, 0.261890}, {"site_b", 64, 0.261803}, {"site_c", 0, 0}}},
             0.261847);
}

}  // namespace
}  // namespace domicile::site_agent
