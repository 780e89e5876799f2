// Training that is interrupted, kept in a checkpoint and gone on with elsewhere ends in the same
// bits.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "models/checkpoint.h"
#include "models/data/pipeline.h"
#include "models/strategy/strategy.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

constexpr std::size_t kRows = 53;
constexpr std::size_t kBatch = 8;  // seven a pass, the last one of five rows

// Images of 4 x 5, with dropout.
const ConvNetSpec kNet = {
    .channels = 1,
    .height = 4,
    .width = 5,
    .blocks = {{.filters = 3, .kernel = 2, .norm = ImageNorm::kBatch, .pool_window = 2}},
    .hidden = {8},
    .activation = Activation::kTanh,
    .dropout = 0.3F,
    .num_outputs = 3};

// A strategy over a shuffled pipeline, one batch after another.
class Trainer {
 public:
  Trainer(const StrategySpec& strategy, const TrainingSpec& training)
      : data_(MakeTestData(kRows, 20, 3)),
        strategy_(MakeTestStrategy(strategy, training)),
        batches_(Batch(Shuffle(Range(kRows), 11, 20), kBatch, LastBatch::kKeep)) {}

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      std::optional<std::vector<std::size_t>> rows = batches_->Next();
      if (!rows) {
        position_ = {.epoch = position_.epoch + 1, .elements = 0};
        batches_->Restart(position_.epoch);
        rows = batches_->Next();
      }
      ++position_.elements;
      Tensor inputs({rows->size(), 20});
      std::vector<std::uint32_t> labels;
      for (std::size_t i = 0; i < rows->size(); ++i) {
        const ConstMatrix row = data_.View((*rows)[i], 1).inputs;
        std::copy_n(row.data, 20, inputs.Values().subspan(20 * i).begin());
        labels.push_back(data_.labels[(*rows)[i]]);
      }
      REQUIRE(strategy_->Step({.inputs = inputs.AsMatrix(), .labels = labels}).ok());
    }
    REQUIRE(strategy_->Finish().ok());
  }

  Bytes Save() const {
    return PrintCheckpoint({.state = strategy_->State(), .position = position_}, Digest{});
  }
  void Load(ByteSpan file) {
    const Checkpoint checkpoint = ParseCheckpoint(file, Digest{}).value();
    REQUIRE(strategy_->Restore(checkpoint.state).ok());
    position_ = checkpoint.position;
    REQUIRE(Seek(*batches_, position_));
  }
  const Strategy& strategy() const { return *strategy_; }

 private:
  TestData data_;
  std::unique_ptr<Strategy> strategy_;
  StagePtr<std::vector<std::size_t>> batches_;
  PipelinePosition position_;
};

TEST_CASE("Resume: training N steps is training k, a checkpoint, and N - k elsewhere") {
  const OptimizerSpec adam = {.kind = OptimizerKind::kAdam, .learning_rate = 0.01};
  const OptimizerSpec momentum = {
      .kind = OptimizerKind::kSgd, .learning_rate = 0.05, .momentum = 0.9, .nesterov = true};
  const Schedule schedule = {
      .kind = ScheduleKind::kCosine, .warmup_steps = 4, .warmup_from = 0.1, .total_steps = 30};
  const TrainingSpec trainings[] = {
      {.model = kNet, .optimizer = adam, .schedule = schedule, .micro_batch = 3, .seed = 5},
      {.model = kNet, .optimizer = momentum, .l2 = 0.01, .clip_norm = 0.5},
      {.model = kNet,
       .optimizer = adam,
       .frozen = {"conv*"},
       .precision = Precision::kFloat16,
       // So large at first that steps are skipped, and growing again before the end.
       .loss_scale = {.initial = 0x1p24, .growth_interval = 3}},
      {.model = kNet, .optimizer = momentum, .precision = Precision::kBfloat16},
  };
  const StrategySpec strategies[] = {
      {.kind = StrategyKind::kOneDevice, .threads = 2},
      {.kind = StrategyKind::kMirrored, .replicas = 3},
      {.kind = StrategyKind::kCentralStorage, .replicas = 2},
      {.kind = StrategyKind::kParameterServer, .replicas = 2, .servers = 3},
  };
  constexpr int kSteps = 24;
  for (const TrainingSpec& training : trainings) {
    for (const StrategySpec& strategy : strategies) {
      CAPTURE(static_cast<int>(strategy.kind));
      Trainer straight(strategy, training);
      straight.Run(kSteps);
      // In the first epoch, at its end, and in the middle of the third.
      for (const int first : {1, 7, 17}) {
        CAPTURE(first);
        Trainer before(strategy, training);
        before.Run(first);
        const Bytes file = before.Save();
        Trainer after(strategy, training);
        after.Run(2);  // whatever it did before
        after.Load(file);
        after.Run(kSteps - first);
        CHECK(SameBits(after.strategy().Parameters(), straight.strategy().Parameters()));
        CHECK(after.Save() == straight.Save());
      }
      if (training.precision == Precision::kFloat16) {
        CHECK(straight.strategy().Report().skipped > 0);
        CHECK(straight.strategy().Report().skipped < kSteps);
      }
    }
  }
}

TEST_CASE("Resume: a checkpoint of one strategy serves another") {
  const TrainingSpec training = {
      .model = kNet, .optimizer = {.kind = OptimizerKind::kAdam, .learning_rate = 0.01}};
  Trainer one({}, training);
  one.Run(9);
  const Bytes file = one.Save();
  for (const StrategySpec& strategy :
       {StrategySpec{.kind = StrategyKind::kMirrored, .replicas = 1},
        StrategySpec{.kind = StrategyKind::kCentralStorage, .replicas = 1},
        StrategySpec{.kind = StrategyKind::kParameterServer, .replicas = 2, .servers = 3}}) {
    Trainer other(strategy, training);
    other.Load(file);
    CHECK(other.Save() == file);
    Trainer same({}, training);
    same.Load(file);
    other.Run(5);
    same.Run(5);
    CHECK(SameBits(other.strategy().Parameters(), same.strategy().Parameters()));
  }
}

TEST_CASE("Resume: the state of another model or optimizer is refused, and changes nothing") {
  const OptimizerSpec adam = {.kind = OptimizerKind::kAdam, .learning_rate = 0.01};
  const OptimizerSpec sgd = {.kind = OptimizerKind::kSgd, .learning_rate = 0.01};
  for (const StrategySpec& spec :
       {StrategySpec{}, StrategySpec{.kind = StrategyKind::kMirrored, .replicas = 2},
        StrategySpec{.kind = StrategyKind::kCentralStorage, .replicas = 2},
        StrategySpec{.kind = StrategyKind::kParameterServer, .replicas = 2, .servers = 90}}) {
    const auto strategy = MakeTestStrategy(spec, {.model = kNet, .optimizer = adam});
    const TrainingState state = strategy->State();
    TrainingState short_parameters = state;
    short_parameters.parameters.pop_back();
    TrainingState no_scale = state;
    no_scale.loss_scale.scale = 0;
    const TrainingState bad[] = {
        short_parameters, no_scale,
        MakeTestStrategy(spec, {.model = kNet, .optimizer = sgd})->State(),
        MakeTestStrategy(spec, {.model = kNet, .optimizer = adam, .frozen = {"conv*"}})->State()};
    for (const TrainingState& other : bad) {
      CHECK(strategy->Restore(other).code() == StatusCode::kInvalidArgument);
      CHECK(strategy->State() == state);
    }
  }
}

}  // namespace
}  // namespace domicile::models
