// Mixed precision in training: master weights, the loss scale, skipped steps.
#include <cmath>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/cpu/rounding_device.h"
#include "models/layers/forwarding_device.h"
#include "models/strategy/strategy.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

const NetworkSpec kMlp = {
    .num_inputs = 20, .hidden = {24, 12}, .activation = Activation::kRelu, .num_outputs = 3};
const OptimizerSpec kAdam = {.kind = OptimizerKind::kAdam, .learning_rate = 0.01};
const OptimizerSpec kSgd = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1};

const StrategySpec kStrategies[] = {
    {.kind = StrategyKind::kOneDevice},
    {.kind = StrategyKind::kMirrored, .replicas = 3},
    {.kind = StrategyKind::kCentralStorage, .replicas = 3},
    {.kind = StrategyKind::kParameterServer, .replicas = 3, .servers = 2},
};

TEST_CASE("RoundingDevice: products read rounded operands and give rounded results") {
  const TestData data = MakeTestData(9, 20, 3);
  const TestData weight = MakeTestData(20, 6, 3);
  const auto plain = MakeCpuDevice(1);
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
    const auto device = WithPrecision(precision, MakeCpuDevice(1));
    Tensor x = data.inputs;
    Tensor w = weight.inputs;
    Tensor got({9, 6});
    Tensor want({9, 6});
    device->Dense(x.AsMatrix(), {.data = w.Values().data(), .inputs = 20, .outputs = 6}, {},
                  Activation::kNone, got.AsMatrix());
    CHECK(SameBits(x.Values(), data.inputs.Values()));  // operands stay as they were

    RoundTo(precision, x.Values(), x.Values());
    RoundTo(precision, w.Values(), w.Values());
    plain->Dense(x.AsMatrix(), {.data = w.Values().data(), .inputs = 20, .outputs = 6}, {},
                 Activation::kNone, want.AsMatrix());
    CHECK_FALSE(SameBits(got.Values(), want.Values()));
    RoundTo(precision, want.Values(), want.Values());
    CHECK(SameBits(got.Values(), want.Values()));
  }
}

TEST_CASE("Mixed precision: learns as float32 does, with every strategy") {
  const TestData data = MakeTestData(60, kMlp.num_inputs, 3);
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
    for (const StrategySpec& spec : kStrategies) {
      CAPTURE(static_cast<int>(spec.kind));
      const auto full = MakeTestStrategy(spec, {.model = kMlp, .optimizer = kAdam});
      const auto mixed =
          MakeTestStrategy(spec, {.model = kMlp, .optimizer = kAdam, .precision = precision});
      const double first = mixed->Loss(data.View(0, 60)).value();
      for (int step = 0; step < 60; ++step) {
        REQUIRE(full->Step(data.View(0, 60)).ok());
        REQUIRE(mixed->Step(data.View(0, 60)).ok());
      }
      REQUIRE(full->Finish().ok());
      REQUIRE(mixed->Finish().ok());
      const double want = full->Loss(data.View(0, 60)).value();
      CHECK(mixed->Loss(data.View(0, 60)).value() == doctest::Approx(want).epsilon(0.15));
      CHECK(want < first / 2);
      CHECK_FALSE(SameBits(mixed->Parameters(), full->Parameters()));  // it does round
    }
  }
}

TEST_CASE("Mixed precision: small steps are not lost, since the parameters are float32") {
  // Steps of 1e-4 on weights of about 1: half precision could not hold the difference.
  const TestData data = MakeTestData(30, kMlp.num_inputs, 3);
  const OptimizerSpec slow = {.kind = OptimizerKind::kAdam, .learning_rate = 1e-5};
  const auto strategy =
      MakeTestStrategy({}, {.model = kMlp, .optimizer = slow, .precision = Precision::kBfloat16});
  const std::vector<float> before(strategy->Parameters().begin(), strategy->Parameters().end());
  for (int step = 0; step < 3; ++step) {
    REQUIRE(strategy->Step(data.View(0, 30)).ok());
  }
  const double moved = Distance(strategy->Parameters(), before);
  CHECK(moved > 1e-5);
  CHECK(moved < 4e-5);
}

TEST_CASE("Mixed precision: the loss scale keeps gradients that float16 alone would lose") {
  // Inputs so small that the gradients of the first layer are below float16's smallest number.
  TestData data = MakeTestData(30, kMlp.num_inputs, 3);
  for (float& value : data.inputs.Values()) {
    value *= 1e-3F;
  }
  const NetworkSpec linear = {.num_inputs = 20, .hidden = {}, .num_outputs = 3};
  const auto moved = [&](double scale) {
    const auto strategy = MakeTestStrategy({}, {.model = linear,
                                                .optimizer = kAdam,
                                                .precision = Precision::kFloat16,
                                                .loss_scale = {.initial = scale}});
    REQUIRE(strategy->Step(data.View(0, 30)).ok());
    std::size_t count = 0;
    for (const float value : strategy->Parameters().first(60)) {
      count += value != 0.0F ? 1 : 0;
    }
    return count;
  };
  CHECK(moved(0x1p-16) < 6);
  CHECK(moved(65536) == 60);
}

// Makes the weight gradient of one chosen call infinite.
class OverflowingDevice final : public ForwardingDevice {
 public:
  explicit OverflowingDevice(int when) : ForwardingDevice(MakeCpuDevice(1)), when_(when) {}
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    ForwardingDevice::DenseWeightGradient(x, dy, dw);
    if (when_-- == 0) {
      dw.data[1] = 1e30F;  // float16 makes it infinite
    }
  }

 private:
  int when_;
};

TEST_CASE("Mixed precision: an overflow at one replica makes all skip the step, and only it") {
  const TestData data = MakeTestData(30, kMlp.num_inputs, 3);
  const NetworkSpec linear = {.num_inputs = 20, .hidden = {}, .num_outputs = 3};
  for (StrategySpec spec : kStrategies) {
    CAPTURE(static_cast<int>(spec.kind));
    // Step 2 overflows: at the last replica alone, or for the servers, whoever takes it.
    const bool synchronous = spec.kind != StrategyKind::kParameterServer;
    spec.check_every = 1;
    spec.make_device = [&spec,
                        synchronous](std::size_t replica) -> StatusOr<std::unique_ptr<Device>> {
      const bool overflows = !synchronous || replica + 1 == spec.replicas;
      return std::make_unique<OverflowingDevice>(overflows ? (synchronous ? 2 : 0) : -1);
    };
    if (!synchronous) {
      spec.replicas = 1;
    }
    const TrainingSpec training = {.model = linear,
                                   .optimizer = kAdam,
                                   .precision = Precision::kFloat16,
                                   .loss_scale = {.initial = 1024, .growth_interval = 3}};
    const auto strategy = MakeTestStrategy(spec, training);
    std::vector<double> scales;
    for (int step = 0; step < 6; ++step) {
      const TrainingState before = strategy->State();
      REQUIRE(strategy->Step(data.View(0, 30)).ok());
      REQUIRE(strategy->Finish().ok());
      const TrainingState after = strategy->State();
      scales.push_back(after.loss_scale.scale);
      const bool skipped = step == (synchronous ? 2 : 0);
      CHECK(after.step == before.step + 1);
      CHECK(after.optimizer.num_steps == before.optimizer.num_steps + (skipped ? 0 : 1));
      CHECK((after.optimizer.first == before.optimizer.first) == skipped);
      CHECK(SameBits(after.parameters, before.parameters) == skipped);
      for (std::size_t replica = 1; replica < strategy->NumReplicas(); ++replica) {
        CHECK(SameBits(strategy->ReplicaParameters(0), strategy->ReplicaParameters(replica)));
      }
    }
    CHECK(scales == (synchronous ? std::vector<double>{1024, 1024, 512, 512, 512, 1024}
                                 : std::vector<double>{512, 512, 512, 1024, 1024, 1024}));
    CHECK(strategy->Report().skipped == 1);
    CHECK(strategy->Report().loss_scale == 1024);
  }
}

TEST_CASE("Mixed precision: clipping sees the gradient without its scale") {
  const TestData data = MakeTestData(30, kMlp.num_inputs, 3);
  // A norm above what the true gradient has, far below the scaled one.
  const auto with = [&](double clip) {
    const auto strategy = MakeTestStrategy({}, {.model = kMlp,
                                                .optimizer = kSgd,
                                                .clip_norm = clip,
                                                .precision = Precision::kFloat16,
                                                .loss_scale = {.initial = 4096}});
    REQUIRE(strategy->Step(data.View(0, 30)).ok());
    REQUIRE(strategy->Report().skipped == 0);
    return std::vector<float>(strategy->Parameters().begin(), strategy->Parameters().end());
  };
  CHECK(with(50) == with(0));
  CHECK(with(0.01) != with(0));
}

}  // namespace
}  // namespace domicile::models
