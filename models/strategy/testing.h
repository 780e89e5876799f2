// What tests of strategies share. For tests only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "models/initial.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

struct TestData {
  Tensor inputs;
  std::vector<std::uint32_t> labels;

  BatchView View(std::size_t first, std::size_t count) const {
    return {.inputs = inputs.AsMatrix().Rows(first, count),
            .labels = std::span(labels).subspan(first, count)};
  }
};

// Numbers in [-2, 2], the same on every run.
inline TestData MakeTestData(std::size_t rows, std::size_t columns, std::uint64_t classes) {
  SeededRandom random(3);
  TestData data = {Tensor({rows, columns}), {}};
  for (float& value : data.inputs.Values()) {
    value = static_cast<float>(static_cast<double>(random.Below(4001)) / 1000.0 - 2.0);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    data.labels.push_back(static_cast<std::uint32_t>(random.Below(classes)));
  }
  return data;
}

inline std::unique_ptr<Strategy> MakeTestStrategy(const StrategySpec& strategy,
                                                  const TrainingSpec& training) {
  return MakeStrategy(strategy, training, InitialParameters(training.model, 9)).value();
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The greatest difference of two elements.
inline double Distance(std::span<const float> a, std::span<const float> b) {
  double worst = a.size() == b.size() ? 0 : 1e300;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double apart = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    worst = apart <= worst ? worst : apart;  // a NaN counts as far
  }
  return worst;
}

}  // namespace domicile::models
