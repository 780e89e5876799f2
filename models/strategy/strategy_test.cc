#include "models/strategy/strategy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

const NetworkSpec kMlp = {
    .num_inputs = 40, .hidden = {24, 12}, .activation = Activation::kTanh, .num_outputs = 3};
const OptimizerSpec kAdam = {.kind = OptimizerKind::kAdam, .learning_rate = 0.01};
const OptimizerSpec kMomentum = {
    .kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 0.9};

TEST_CASE("Strategy: mirrored replicas hold the same bits after every step") {
  const TestData data = MakeTestData(101, kMlp.num_inputs, 3);
  for (const OptimizerSpec& optimizer : {kAdam, kMomentum}) {
    for (const std::size_t replicas : {2U, 3U, 4U}) {
      const auto mirrored = MakeTestStrategy(
          {.kind = StrategyKind::kMirrored, .replicas = replicas}, {kMlp, optimizer, 0.01});
      REQUIRE(mirrored->NumReplicas() == replicas);
      for (std::size_t step = 0; step < 12; ++step) {
        // Sizes that do not divide evenly, among them fewer rows than replicas.
        REQUIRE(mirrored->Step(data.View(step, step % 4 == 3 ? 1 : 37 + step)).ok());
        for (std::size_t replica = 1; replica < replicas; ++replica) {
          CHECK(SameBits(mirrored->ReplicaParameters(0), mirrored->ReplicaParameters(replica)));
        }
      }
    }
  }
}

TEST_CASE("Strategy: mirrored equals one device up to float rounding, also with unequal slices") {
  const TestData data = MakeTestData(101, kMlp.num_inputs, 3);
  const TrainingSpec training = {kMlp, kMomentum, 0.01};
  const auto one = MakeTestStrategy({}, training);
  for (const std::size_t replicas : {1U, 2U, 3U, 7U}) {
    CAPTURE(replicas);
    const auto single = MakeTestStrategy({}, training);
    const auto mirrored =
        MakeTestStrategy({.kind = StrategyKind::kMirrored, .replicas = replicas}, training);
    for (int step = 0; step < 30; ++step) {
      const double a = single->Step(data.View(0, 101)).value();
      const double b = mirrored->Step(data.View(0, 101)).value();
      CHECK(a == doctest::Approx(b).epsilon(1e-5));
    }
    CHECK(mirrored->Loss(data.View(0, 50)).value() ==
          doctest::Approx(single->Loss(data.View(0, 50)).value()).epsilon(1e-5));
    double worst = 0;
    for (std::size_t i = 0; i < single->Parameters().size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(single->Parameters()[i]) -
                                        static_cast<double>(mirrored->Parameters()[i])));
    }
    CHECK(worst < 2e-5);
  }
  CHECK(one->NumReplicas() == 1);
}

TEST_CASE("Strategy: one device gives the same bits for any number of threads") {
  // Large enough to be cut into pieces, in rows and in inputs.
  const NetworkSpec wide = {
      .num_inputs = 300, .hidden = {64}, .activation = Activation::kRelu, .num_outputs = 4};
  const TestData data = MakeTestData(200, 300, 4);
  const auto one = MakeTestStrategy({.threads = 1}, {wide, kAdam, 0.001});
  for (const std::size_t threads : {2U, 3U, 5U}) {
    const auto many = MakeTestStrategy({.threads = threads}, {wide, kAdam, 0.001});
    const auto again = MakeTestStrategy({.threads = 1}, {wide, kAdam, 0.001});
    for (int step = 0; step < 5; ++step) {
      CHECK(many->Step(data.View(0, 200)).value() == again->Step(data.View(0, 200)).value());
    }
    CHECK(SameBits(many->Parameters(), again->Parameters()));
    CHECK_FALSE(SameBits(many->Parameters(), one->Parameters()));  // control: steps do something
  }
}

TEST_CASE("Strategy: steps lower the loss") {
  const TestData data = MakeTestData(60, kMlp.num_inputs, 3);
  const auto strategy = MakeTestStrategy({.threads = 2}, {kMlp, kAdam, 0});
  const double before = strategy->Loss(data.View(0, 60)).value();

  for (int step = 0; step < 100; ++step) {
    REQUIRE(strategy->Step(data.View(0, 60)).ok());
  }

  CHECK(strategy->Loss(data.View(0, 60)).value() < before / 4);
}

TEST_CASE("Strategy: refuses batches and specs that do not fit") {
  TestData data = MakeTestData(5, kMlp.num_inputs, 3);
  for (const StrategyKind kind : {StrategyKind::kOneDevice, StrategyKind::kMirrored}) {
    const auto strategy = MakeTestStrategy({.kind = kind, .replicas = 2}, {kMlp, kAdam, 0});
    CHECK(strategy->Step(data.View(0, 0)).status().code() == StatusCode::kInvalidArgument);
    data.labels[1] = 3;
    CHECK(strategy->Step(data.View(0, 2)).status().code() == StatusCode::kInvalidArgument);
    data.labels[1] = 2;
    CHECK(strategy->Step(data.View(0, 2)).ok());
  }
  const std::vector<float> initial = InitialParameters(kMlp, 1);
  const auto code = [&](const StrategySpec& strategy, std::span<const float> parameters) {
    return MakeStrategy(strategy, {kMlp, kAdam, 0}, parameters).status().code();
  };
  CHECK(code({.kind = StrategyKind::kNone}, initial) == StatusCode::kInvalidArgument);
  CHECK(code({.threads = 0}, initial) == StatusCode::kInvalidArgument);
  CHECK(code({.kind = StrategyKind::kMirrored, .replicas = 5000}, initial) ==
        StatusCode::kInvalidArgument);
  CHECK(code({}, std::span(initial).first(3)) == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace domicile::models
