// Strategies over GPUs: their weights are those of one CPU with the same batches.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "models/cuda/testing.h"
#include "models/cuda_plugin.h"
#include "models/layers/forwarding_device.h"
#include "models/layers/testing.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

TrainingSpec Training() {
  TrainingSpec training;
  training.model = NetworkSpec{
      .num_inputs = 6, .hidden = {8}, .activation = Activation::kTanh, .num_outputs = 3};
  training.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 0.9};
  training.l2 = 0.01;
  training.clip_norm = 1;
  return training;
}

struct Run {
  std::vector<float> parameters;
  std::vector<double> losses;
};

// Batches of 1, 9, 64 and 65 examples: slices are uneven, and some are empty.
Run Train(const StrategySpec& strategy_spec, const TrainingSpec& training) {
  const auto strategy = MakeTestStrategy(strategy_spec, training);
  const TestData data = MakeTestData(65, 6, 3);
  Run run;
  for (const std::size_t rows :
       {std::size_t{64}, std::size_t{1}, std::size_t{65}, std::size_t{9}}) {
    const auto loss = strategy->Step(data.View(0, rows));
    REQUIRE_MESSAGE(loss.ok(), loss.status().ToString());
    run.losses.push_back(*loss);
  }
  REQUIRE(strategy->Finish().ok());
  run.losses.push_back(strategy->Loss(data.View(0, 65)).value());
  const auto parameters = strategy->Parameters();
  run.parameters.assign(parameters.begin(), parameters.end());
  for (std::size_t replica = 0; replica < strategy->NumReplicas(); ++replica) {
    CHECK(SameBits(strategy->ReplicaParameters(replica), run.parameters));
  }
  return run;
}

StrategySpec OnGpus(StrategyKind kind, std::size_t replicas) {
  StrategySpec spec;
  spec.kind = kind;
  spec.replicas = replicas;
  spec.check_every = 2;
  spec.make_device = CudaDevices({.library = TestPlugin()});
  return spec;
}

TEST_CASE("CudaDevice: every strategy's weights are those of one CPU") {
  const auto gpus = NumCudaDevices(TestPlugin());
  REQUIRE(gpus.ok());
  const Run want = Train({.kind = StrategyKind::kOneDevice}, Training());
  for (const StrategyKind kind : {StrategyKind::kOneDevice, StrategyKind::kMirrored,
                                  StrategyKind::kCentralStorage, StrategyKind::kParameterServer}) {
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{3}}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(replicas);
      if (replicas > *gpus) {
        MESSAGE("skipped: fewer than ", replicas, " GPUs");
        continue;
      }
      const Run got = Train(OnGpus(kind, replicas), Training());
      CHECK(Distance(got.parameters, want.parameters) < 1e-5);
      CHECK(got.losses.back() == doctest::Approx(want.losses.back()).epsilon(1e-5));
    }
  }
}

// A device that knows no way to others.
class Alone final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Device& Innermost() override { return *this; }
};

TEST_CASE("Mirrored: devices that cannot be connected add up on the host") {
  StrategySpec alone = OnGpus(StrategyKind::kMirrored, 2);
  if (*NumCudaDevices(TestPlugin()) < 2) {
    MESSAGE("skipped: fewer than 2 GPUs");
    return;
  }
  const Run connected = Train(alone, Training());
  alone.make_device = [make = alone.make_device](std::size_t replica) {
    return StatusOr<std::unique_ptr<Device>>(std::make_unique<Alone>(make(replica).value()));
  };
  CHECK(Distance(Train(alone, Training()).parameters, connected.parameters) < 1e-6);
}

TEST_CASE("CudaDevice: a state is taken from a GPU and given back, to the bit") {
  TrainingSpec training = Training();
  training.optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 0.01};
  const TestData data = MakeTestData(32, 6, 3);
  const auto first = MakeTestStrategy(OnGpus(StrategyKind::kOneDevice, 1), training);
  REQUIRE(first->Step(data.View(0, 32)).ok());
  const TrainingState state = first->State();
  REQUIRE(first->Step(data.View(0, 20)).ok());
  const auto second = MakeTestStrategy(OnGpus(StrategyKind::kOneDevice, 1), training);
  REQUIRE(second->Restore(state).ok());
  REQUIRE(second->Step(data.View(0, 20)).ok());
  CHECK(second->State() == first->State());
}

}  // namespace
}  // namespace domicile::models
