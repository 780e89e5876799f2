// What holds of every synchronous strategy: it computes what one device computes.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "models/strategy/strategy.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

const NetworkSpec kMlp = {
    .num_inputs = 20, .hidden = {24, 12}, .activation = Activation::kTanh, .num_outputs = 3};
// Images of 4 x 5, with dropout.
const ConvNetSpec kDropNet = {.channels = 1,
                              .height = 4,
                              .width = 5,
                              .blocks = {{.filters = 3, .kernel = 2, .pool_window = 2}},
                              .hidden = {8},
                              .activation = Activation::kTanh,
                              .dropout = 0.3F,
                              .num_outputs = 3};
const OptimizerSpec kAdam = {.kind = OptimizerKind::kAdam, .learning_rate = 0.003};
const OptimizerSpec kMomentum = {
    .kind = OptimizerKind::kSgd, .learning_rate = 0.05, .momentum = 0.9};

struct Named {
  std::string name;
  StrategySpec spec;
};

std::vector<Named> Synchronous() {
  std::vector<Named> all;
  for (const std::size_t replicas : {1U, 2U, 3U, 5U}) {
    const std::string number = std::to_string(replicas);
    all.push_back({"mirrored " + number, {.kind = StrategyKind::kMirrored, .replicas = replicas}});
    all.push_back({"central storage " + number,
                   {.kind = StrategyKind::kCentralStorage, .threads = 2, .replicas = replicas}});
    all.push_back({"parameter server " + number,
                   {.kind = StrategyKind::kParameterServer,
                    .replicas = replicas,
                    .servers = replicas + 1,
                    .staleness = 0}});
  }
  return all;
}

// Passes over the data in order, the last short batch kept. Returns the sum of all losses.
double RunEpochs(Strategy& strategy, const TestData& data, std::size_t batch, int epochs) {
  double loss = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t first = 0; first < data.labels.size(); first += batch) {
      loss += strategy.Step(data.View(first, std::min(batch, data.labels.size() - first))).value();
    }
  }
  return loss + strategy.Finish().value();
}

TEST_CASE("Synchronous strategies: as one device, for sites of 64, 65 and 3 rows") {
  for (const std::size_t rows : {64U, 65U, 3U}) {
    const TestData data = MakeTestData(rows, kMlp.num_inputs, 3);
    const TrainingSpec trainings[] = {
        {.model = kMlp, .optimizer = kMomentum, .l2 = 0.01},
        {.model = kMlp, .optimizer = kAdam, .clip_norm = 0.5, .micro_batch = 5},
        {.model = kDropNet, .optimizer = kMomentum, .seed = 4},
    };
    for (const TrainingSpec& training : trainings) {
      const auto one = MakeTestStrategy({}, training);
      const double want = RunEpochs(*one, data, 32, 4);
      for (const Named& named : Synchronous()) {
        CAPTURE(named.name);
        CAPTURE(rows);
        const auto strategy = MakeTestStrategy(named.spec, training);
        CHECK(RunEpochs(*strategy, data, 32, 4) == doctest::Approx(want).epsilon(1e-5));
        CHECK(Distance(strategy->Parameters(), one->Parameters()) < 2e-5);
        CHECK(strategy->Loss(data.View(0, rows)).value() ==
              doctest::Approx(one->Loss(data.View(0, rows)).value()).epsilon(1e-5));
        CHECK(strategy->Report().steps == one->Report().steps);
      }
    }
  }
}

TEST_CASE("Synchronous strategies: central storage has the bits of mirrored replicas") {
  const TestData data = MakeTestData(101, kMlp.num_inputs, 3);
  const TrainingSpec training = {
      .model = kDropNet, .optimizer = kAdam, .l2 = 0.01, .clip_norm = 0.3};
  for (const std::size_t replicas : {1U, 2U, 3U}) {
    const auto mirrored =
        MakeTestStrategy({.kind = StrategyKind::kMirrored, .replicas = replicas}, training);
    const auto central = MakeTestStrategy(
        {.kind = StrategyKind::kCentralStorage, .threads = 3, .replicas = replicas}, training);
    RunEpochs(*mirrored, data, 16, 3);
    RunEpochs(*central, data, 16, 3);
    CHECK(SameBits(mirrored->Parameters(), central->Parameters()));
    CHECK(mirrored->State() == central->State());
  }
}

TEST_CASE("Synchronous strategies: one replica, and servers one batch at a time, are one device") {
  const TestData data = MakeTestData(77, kMlp.num_inputs, 3);
  for (const OptimizerSpec& optimizer : {kAdam, kMomentum}) {
    const TrainingSpec training = {
        .model = kDropNet, .optimizer = optimizer, .l2 = 0.01, .clip_norm = 1, .micro_batch = 7};
    const auto one = MakeTestStrategy({}, training);
    RunEpochs(*one, data, 16, 3);
    const StrategySpec specs[] = {
        {.kind = StrategyKind::kMirrored, .replicas = 1},
        {.kind = StrategyKind::kCentralStorage, .replicas = 1},
        {.kind = StrategyKind::kParameterServer, .replicas = 3, .servers = 4},
    };
    for (const StrategySpec& spec : specs) {
      const auto strategy = MakeTestStrategy(spec, training);
      RunEpochs(*strategy, data, 16, 3);
      CHECK(SameBits(strategy->Parameters(), one->Parameters()));
      CHECK(strategy->State() == one->State());
    }
  }
}

// A case others ran into: a linear model without intercept, from 0, batches of 32 in file order.
// The numbers are in exact multiples of 1/32.
struct Site {
  std::vector<float> x;
  std::vector<float> y;
};

Site MakeSite(std::size_t rows) {
  Site site;
  SeededRandom random(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const float x = static_cast<float>(random.Below(65)) / 32 - 1;
    site.x.push_back(x);
    site.y.push_back(2 * x + (static_cast<float>(random.Below(17)) - 8) / 32);
  }
  return site;
}

// The weight after one pass, in float64 by the formula: w -= 0.1 * mean(2 (w x - y) x).
double WeightByHand(const Site& site, std::size_t batch) {
  double w = 0;
  for (std::size_t first = 0; first < site.x.size(); first += batch) {
    const std::size_t last = std::min(first + batch, site.x.size());
    double slope = 0;
    for (std::size_t i = first; i < last; ++i) {
      const auto x = static_cast<double>(site.x[i]);
      slope += 2 * (w * x - static_cast<double>(site.y[i])) * x;
    }
    w -= 0.1 * slope / static_cast<double>(last - first);
  }
  return w;
}

TEST_CASE("Synchronous strategies: a short last batch weighs by its own size (C41)") {
  const TrainingSpec training = {
      .model =
          NetworkSpec{
              .num_inputs = 1, .hidden = {}, .num_outputs = 1, .loss = LossKind::kSquaredError},
      .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1},
      .frozen = {"*bias"}};
  std::vector<Named> strategies = Synchronous();
  strategies.push_back({"one device", {}});
  for (const std::size_t rows : {64U, 65U, 3U}) {
    const Site site = MakeSite(rows);
    for (const Named& named : strategies) {
      CAPTURE(named.name);
      CAPTURE(rows);
      const std::array<float, 2> zero = {};
      const auto strategy = MakeStrategy(named.spec, training, zero).value();
      for (std::size_t first = 0; first < rows; first += 32) {
        const std::size_t count = std::min<std::size_t>(32, rows - first);
        REQUIRE(strategy
                    ->Step({.inputs = {site.x.data() + first, count, 1},
                            .targets = {site.y.data() + first, count, 1}})
                    .ok());
      }
      REQUIRE(strategy->Finish().ok());
      CHECK(static_cast<double>(strategy->Parameters()[0]) ==
            doctest::Approx(WeightByHand(site, 32)).epsilon(1e-5));
      CHECK(strategy->Parameters()[1] == 0.0F);
    }
  }
}

TEST_CASE("Synchronous strategies: the report tells examples, time and memory of each replica") {
  const TestData data = MakeTestData(50, kMlp.num_inputs, 3);
  for (const Named& named : Synchronous()) {
    CAPTURE(named.name);
    const auto strategy = MakeTestStrategy(named.spec, {.model = kMlp, .optimizer = kAdam});
    RunEpochs(*strategy, data, 20, 2);

    const StepReport report = strategy->Report();

    CHECK(report.steps == 6);
    CHECK(report.skipped == 0);
    REQUIRE(report.replicas.size() == named.spec.replicas);
    std::uint64_t examples = 0;
    std::uint64_t bytes = 0;
    for (const ReplicaReport& replica : report.replicas) {
      examples += replica.examples;
      bytes += replica.state_bytes;
      CHECK(replica.CommunicationShare() >= 0);
      CHECK(replica.CommunicationShare() <= 1);
    }
    CHECK(examples == 100);
    // Parameters and two moments at least once, gradients at every replica.
    const std::uint64_t size = strategy->Parameters().size() * sizeof(float);
    CHECK(bytes >= (3 + named.spec.replicas) * size);
  }
}

}  // namespace
}  // namespace domicile::models
