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
  } cases[] = {
      {"sgd_lr0.1", {.kind = OptimizerKind::kSgd, .learning_rate = 0.1}, 0},
      {"sgd_momentum0.9_lr0.05",
       {.kind = OptimizerKind::kSgd, .learning_rate = 0.05, .momentum = 0.9},
       0},
      {"adam_lr0.01", {.kind = OptimizerKind::kAdam, .learning_rate = 0.01}, 0},
      {"adam_l2_0.1", {.kind = OptimizerKind::kAdam, .learning_rate = 0.01}, 0.1},
  };
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/optimizers.json");
  const auto golden = nlohmann::json::parse(file);
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto device = MakeCpuDevice(1);
    Optimizer optimizer(c.spec, 4, *device);
    std::vector<float> w = {0.5F, -1.2F, 2.0F, 0.0F};
    for (const auto& step : golden.at(c.name)) {
      optimizer.Step(Gradient(w, c.l2), w);
      for (std::size_t i = 0; i < w.size(); ++i) {
        CHECK(std::fabs(static_cast<double>(w[i]) - step.at("w").at(i).get<double>()) < 2e-5);
      }
    }
  }
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
  };
  for (const OptimizerSpec& spec : bad) {
    CHECK(CheckSpec(spec).code() == StatusCode::kInvalidArgument);
  }
  CHECK(CheckSpec({.kind = OptimizerKind::kAdam, .learning_rate = 0.1}).ok());
}

}  // namespace
}  // namespace domicile::models
