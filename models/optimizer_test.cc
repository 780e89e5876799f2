#include "models/optimizer.h"

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "models/cpu/cpu_device.h"

namespace domicile::models {
namespace {

// The objective of the vectors: 0.5 * sum(s * (w - c)^2) + 0.1 * sum(sin(3 w)).
std::vector<float> Gradient(std::span<const float> w, double l2) {
  constexpr std::array<double, 4> kCentre = {1, -2, 0.5, 3};
  constexpr std::array<double, 4> kScale = {1, 0.3, 2, 0.05};
  std::vector<float> gradient;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double x = static_cast<double>(w[i]);
    gradient.push_back(
        static_cast<float>(kScale[i] * (x - kCentre[i]) + 0.3 * std::cos(3 * x) + l2 * x));
  }
  return gradient;
}

TEST_CASE("Optimizer: trajectories agree with PyTorch") {
  const struct {
    const char* name;
    OptimizerSpec spec;
    double l2;
    Schedule schedule{};
  } cases[] = {
      {"sgd_lr0.1", {.kind = OptimizerKind::kSgd, .learning_rate = 0.1}, 0},
      {"sgd_momentum0.9_lr0.05",
       {.kind = OptimizerKind::kSgd, .learning_rate = 0.05, .momentum = 0.9},
       0},
      {"sgd_nesterov0.9_lr0.05",
       {.kind = OptimizerKind::kSgd, .learning_rate = 0.05, .momentum = 0.9, .nesterov = true},
       0},
      {"sgd_momentum0.9_wd0.01_dampening0.1",
       {.kind = OptimizerKind::kSgd,
        .learning_rate = 0.05,
        .momentum = 0.9,
        .dampening = 0.1,
        .weight_decay = 0.01},
       0},
      {"adamw_lr0.01_wd0.1",
       {.kind = OptimizerKind::kAdamW, .learning_rate = 0.01, .weight_decay = 0.1},
       0},
      {"adamw_lr0.1_b0.8_0.95_eps1e-6_wd0",
       {.kind = OptimizerKind::kAdamW,
        .learning_rate = 0.1,
        .beta1 = 0.8,
        .beta2 = 0.95,
        .epsilon = 1e-6},
       0},
      {"sgd_warmup4_cosine10_base0.1",
       {.kind = OptimizerKind::kSgd, .learning_rate = 0.1},
       0,
       {.kind = ScheduleKind::kCosine, .warmup_steps = 4, .total_steps = 10}},
      {"adam_lr0.01", {.kind = OptimizerKind::kAdam, .learning_rate = 0.01}, 0},
      {"adam_l2_0.1", {.kind = OptimizerKind::kAdam, .learning_rate = 0.01}, 0.1},
  };
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/optimizers.json");
  const auto golden = nlohmann::json::parse(file);
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto device = MakeCpuDevice(1);
    Optimizer optimizer(c.spec, {{.offset = 0, .size = 4}}, *device);
    std::vector<float> w = {0.5F, -1.2F, 2.0F, 0.0F};
    std::uint64_t number = 0;
    for (const auto& step : golden.at(c.name)) {
      optimizer.Step(Gradient(w, c.l2), w, RateShare(c.schedule, number++));
      for (std::size_t i = 0; i < w.size(); ++i) {
        CHECK(std::fabs(static_cast<double>(w[i]) - step.at("w").at(i).get<double>()) < 2e-5);
      }
    }
  }
}

TEST_CASE("Optimizer: only its ranges change, and only those that decay are decayed") {
  const auto device = MakeCpuDevice(1);
  Optimizer optimizer(
      {.kind = OptimizerKind::kAdamW, .learning_rate = 0.1, .weight_decay = 0.5},
      {{.offset = 1, .size = 1, .decays = true}, {.offset = 3, .size = 1, .decays = false}},
      *device);
  std::vector<float> w = {1, 1, 1, 1, 1};
  const std::vector<float> zero(5, 0.0F);

  optimizer.Step(zero, w);

  CHECK(w == std::vector<float>{1, 0.95F, 1, 1, 1});
}

TEST_CASE("ClipByGlobalNorm: agrees with PyTorch over all tensors together") {
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/nn_gradients.json");
  const auto golden = nlohmann::json::parse(file).at("clip_grad_norm");
  std::vector<float> gradient;
  std::vector<double> want;
  for (const auto& tensor : golden.at("grads")) {
    for (const auto& value : tensor) {
      gradient.push_back(value.get<float>());
    }
  }
  for (const auto& tensor : golden.at("clipped")) {
    for (const auto& value : tensor) {
      want.push_back(value.get<double>());
    }
  }
  gradient.push_back(100);  // in no range: frozen
  const std::vector<ParameterRange> ranges = {{.offset = 0, .size = 2}, {.offset = 2, .size = 1}};
  const auto device = MakeCpuDevice(1);

  const double norm =
      ClipByGlobalNorm(golden.at("max_norm").get<double>(), ranges, gradient, *device);

  CHECK(norm == doctest::Approx(golden.at("total_norm").get<double>()));
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(gradient[i] == doctest::Approx(want[i]).epsilon(1e-6));
  }
  CHECK(gradient.back() == 100.0F);
  std::vector<float> small = {0.3F, 0.4F, 0};
  ClipByGlobalNorm(1, ranges, small, *device);
  CHECK(small == std::vector<float>{0.3F, 0.4F, 0});  // below the bound nothing happens
}

TEST_CASE("RateShare: warms up from a share, then stays or falls along a cosine") {
  const Schedule warm = {.warmup_steps = 4, .warmup_from = 0.2};
  CHECK(RateShare(warm, 0) == doctest::Approx(0.4));
  CHECK(RateShare(warm, 3) == doctest::Approx(1));
  CHECK(RateShare(warm, 1000) == 1);
  const Schedule cosine = {.kind = ScheduleKind::kCosine, .warmup_steps = 2, .total_steps = 6};
  CHECK(RateShare(cosine, 4) == doctest::Approx(0.5));
  CHECK(RateShare(cosine, 6) == 0);
  CHECK(CheckSchedule(cosine).ok());
  CHECK(
      CheckSchedule({.kind = ScheduleKind::kCosine, .warmup_steps = 2, .total_steps = 2}).code() ==
      StatusCode::kInvalidArgument);
  CHECK(CheckSchedule({.warmup_from = 1.5}).code() == StatusCode::kInvalidArgument);
  CHECK(ScaledRate(0.1, 256, 8192) == doctest::Approx(3.2));
}

TEST_CASE("Optimizer: specs that cannot train are refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const OptimizerSpec bad[] = {
      {},
      {.kind = OptimizerKind::kSgd, .learning_rate = 0},
      {.kind = OptimizerKind::kSgd, .learning_rate = nan},
      {.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 1},
      {.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = nan},
      {.kind = OptimizerKind::kAdam, .learning_rate = 0.1, .beta1 = 1},
      {.kind = OptimizerKind::kAdam, .learning_rate = 0.1, .epsilon = 0},
      {.kind = OptimizerKind::kAdam, .learning_rate = 0.1, .weight_decay = 0.1},
      {.kind = OptimizerKind::kAdamW, .learning_rate = 0.1, .weight_decay = -1},
      {.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .nesterov = true},
      {.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 0.9, .dampening = 1},
  };
  for (const OptimizerSpec& spec : bad) {
    CHECK(CheckSpec(spec).code() == StatusCode::kInvalidArgument);
  }
  CHECK(CheckSpec({.kind = OptimizerKind::kAdam, .learning_rate = 0.1}).ok());
}

}  // namespace
}  // namespace domicile::models
