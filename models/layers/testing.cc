#include "models/layers/testing.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::models {
namespace {

// Float32 outputs limit how small a step may be, and curvature how large.
constexpr float kStep = 4e-3F;
constexpr double kTolerance = 3e-3;

double Largest(std::span<const float> values) {
  double largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  return largest;
}

Tensor OnHost(Device& device, ConstMatrix m) {
  Tensor tensor({m.rows, m.columns});
  Copy(device.memory(), std::span(m.data, m.rows * m.columns), tensor.Values());
  return tensor;
}

// Layers that read tokens alone are given an empty tensor.
ConstMatrix View(const Tensor& x) { return x.shape().size() == 2 ? x.AsMatrix() : ConstMatrix{}; }

}  // namespace

const Golden& GoldenCase(const std::string& name) {
  static const Golden golden = [] {
    std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/nn_gradients.json");
    return Golden::parse(file);
  }();
  for (const Golden& c : golden.at("cases")) {
    if (c.at("name") == name) {
      return c;
    }
  }
  FAIL("no such case: ", name);
  return golden;
}

std::vector<float> GoldenValues(const Golden& array) {
  return array.at("data").get<std::vector<float>>();
}

Tensor GoldenTensor(const Golden& array, std::vector<std::size_t> shape) {
  Tensor tensor(std::move(shape));
  const std::vector<float> values = GoldenValues(array);
  REQUIRE(values.size() == tensor.NumElements());
  std::copy(values.begin(), values.end(), tensor.Values().begin());
  return tensor;
}

void CheckGolden(std::span<const float> got, const Golden& array) {
  const auto want = array.at("data").get<std::vector<double>>();
  REQUIRE(got.size() == want.size());
  double largest = 0;
  for (const double value : want) {
    largest = std::max(largest, std::fabs(value));
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(static_cast<double>(got[i]) - want[i]) <= 2e-5 * largest);
  }
}

std::vector<float> TestNumbers(std::uint64_t seed, std::size_t size, double scale) {
  SeededRandom random(seed);
  std::vector<float> values(size);
  for (float& value : values) {
    value = static_cast<float>(scale * (static_cast<double>(random.Below(20001)) / 10000.0 - 1.0));
  }
  return values;
}

LayerUnderTest::LayerUnderTest(std::unique_ptr<Layer> under_test)
    : device_(MakeTestDevice()), layer(std::move(under_test)) {
  layer->Declare(layout);
  parameters.resize(layout.NumParameters());
  gradient.resize(layout.NumParameters());
}

std::span<float> LayerUnderTest::Values(const std::string& name) {
  for (const ParameterView& view : layout.Views()) {
    if (view.name == name) {
      return std::span(parameters).subspan(view.offset, view.size);
    }
  }
  FAIL("no such tensor: ", name);
  return {};
}

std::span<const float> LayerUnderTest::GradientOf(const std::string& name) const {
  for (const ParameterView& view : layout.Views()) {
    if (view.name == name) {
      return std::span(gradient).subspan(view.offset, view.size);
    }
  }
  FAIL("no such tensor: ", name);
  return {};
}

void LayerUnderTest::Randomise(std::uint64_t seed) {
  parameters = TestNumbers(seed, parameters.size(), 1);
  for (const ParameterView& view : layout.Views()) {
    for (std::size_t i = view.offset; i < view.offset + view.size; ++i) {
      // Scales and variances stay away from 0.
      parameters[i] = view.initial_value == 1 ? 1 + 0.5F * parameters[i] : parameters[i];
    }
  }
}

Tensor LayerUnderTest::Forward(const Tensor& x) {
  pass.parameters = parameters;
  return OnHost(*device_, layer->Forward(*device_, pass, View(x)));
}

Tensor LayerUnderTest::Backward(const Tensor& x, const Tensor& dy, bool wants_dx) {
  pass.parameters = parameters;
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  layer->Forward(*device_, pass, View(x));
  Tensor scratch = dy;  // the layer may write over it
  return OnHost(*device_, layer->Backward(*device_, pass, scratch.AsMatrix(), wants_dx, gradient));
}

double LayerUnderTest::Project(const Tensor& x, std::span<const float> cotangent) {
  const Tensor y = Forward(x);
  REQUIRE(y.NumElements() == cotangent.size());
  double sum = 0;
  for (std::size_t i = 0; i < cotangent.size(); ++i) {
    sum += static_cast<double>(y.Values()[i]) * static_cast<double>(cotangent[i]);
  }
  return sum;
}

void LayerUnderTest::CheckGradients(const Tensor& x, std::uint64_t seed, bool differentiable_in_x) {
  const Tensor y = Forward(x);
  Tensor dy({y.shape()[0], y.shape()[1]});
  const std::vector<float> cotangent = TestNumbers(seed, y.NumElements(), 1);
  std::copy(cotangent.begin(), cotangent.end(), dy.Values().begin());
  const Tensor dx = Backward(x, dy, differentiable_in_x);
  const std::vector<float> analytic = gradient;

  const auto slope = [&](float& value, Tensor& inputs) {
    const float kept = value;
    value = kept + kStep;
    const double above = Project(inputs, cotangent);
    value = kept - kStep;
    const double below = Project(inputs, cotangent);
    value = kept;
    return (above - below) / (2 * static_cast<double>(kStep));
  };
  Tensor moved = x;
  if (differentiable_in_x) {
    const double scale = std::max(1.0, Largest(std::as_const(dx).Values()));
    for (std::size_t i = 0; i < x.NumElements(); ++i) {
      CAPTURE(i);
      const double want = slope(moved.Values()[i], moved);
      CHECK(std::fabs(static_cast<double>(dx.Values()[i]) - want) < kTolerance * scale);
    }
  }
  for (const ParameterView& view : layout.Views()) {
    if (!view.trainable) {
      continue;
    }
    CAPTURE(view.name);
    const double scale =
        std::max(1.0, Largest(std::span(analytic).subspan(view.offset, view.size)));
    for (std::size_t i = view.offset; i < view.offset + view.size; ++i) {
      CAPTURE(i);
      const double want = slope(parameters[i], moved);
      CHECK(std::fabs(static_cast<double>(analytic[i]) - want) < kTolerance * scale);
    }
  }
}

}  // namespace domicile::models
