#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"
#include "models/cpu/cpu_device.h"
#include "models/model.h"

namespace domicile::models {
namespace {

double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kNone:
      return x;
  }
  return x;
}

// The mean loss of a network, straight from its definition, in float64.
double PlainLoss(const NetworkSpec& spec, const std::vector<double>& parameters,
                 const std::vector<double>& x, const std::vector<std::uint32_t>& labels) {
  std::vector<std::size_t> widths = {spec.num_inputs};
  widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(spec.num_outputs);
  double loss = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    std::vector<double> values(
        x.begin() + static_cast<std::ptrdiff_t>(row * spec.num_inputs),
        x.begin() + static_cast<std::ptrdiff_t>((row + 1) * spec.num_inputs));
    std::size_t at = 0;
    for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
      const std::size_t ins = widths[layer];
      const std::size_t outs = widths[layer + 1];
      std::vector<double> next(outs);
      for (std::size_t o = 0; o < outs; ++o) {
        next[o] = parameters[at + ins * outs + o];
        for (std::size_t i = 0; i < ins; ++i) {
          next[o] += values[i] * parameters[at + i * outs + o];
        }
        if (layer + 2 < widths.size()) {
          next[o] = Apply(spec.activation, next[o]);
        }
      }
      at += (ins + 1) * outs;
      values = next;
    }
    if (values.size() == 1) {
      const double sign = labels[row] == 1 ? -1 : 1;
      loss += std::log1p(std::exp(sign * values[0]));
    } else {
      double sum = 0;
      for (const double value : values) {
        sum += std::exp(value);
      }
      loss += std::log(sum) - values[labels[row]];
    }
  }
  return loss / static_cast<double>(labels.size());
}

std::vector<double> Draw(SeededRandom& random, std::size_t size, double scale) {
  std::vector<double> values(size);
  for (double& value : values) {
    value = static_cast<double>(
        static_cast<float>(scale * (static_cast<double>(random.Below(20001)) / 10000.0 - 1.0)));
  }
  return values;
}

Tensor ToTensor(const std::vector<double>& values, std::size_t columns) {
  Tensor tensor({values.size() / columns, columns});
  std::transform(values.begin(), values.end(), tensor.Values().begin(),
                 [](double v) { return static_cast<float>(v); });
  return tensor;
}

TEST_CASE("Network: gradients are those of the plain definition, by central differences") {
  const struct {
    const char* name;
    NetworkSpec spec;
  } cases[] = {
      {"logistic", {.num_inputs = 4, .hidden = {}, .num_outputs = 1}},
      {"softmax", {.num_inputs = 3, .hidden = {}, .num_outputs = 4}},
      {"tanh", {.num_inputs = 4, .hidden = {6}, .activation = Activation::kTanh, .num_outputs = 1}},
      {"sigmoid, deep",
       {.num_inputs = 3, .hidden = {5, 4}, .activation = Activation::kSigmoid, .num_outputs = 3}},
      {"gelu", {.num_inputs = 3, .hidden = {4}, .activation = Activation::kGelu, .num_outputs = 3}},
      {"gelu, tanh form",
       {.num_inputs = 3, .hidden = {4}, .activation = Activation::kGeluTanh, .num_outputs = 1}},
      {"relu", {.num_inputs = 3, .hidden = {7}, .activation = Activation::kRelu, .num_outputs = 2}},
  };
  SeededRandom random(11);
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const std::size_t rows = 9;
    const auto parameters = Draw(random, LayoutOf(c.spec).NumParameters(), 0.8);
    const auto x = Draw(random, rows * c.spec.num_inputs, 2);
    std::vector<std::uint32_t> labels;
    for (std::size_t row = 0; row < rows; ++row) {
      labels.push_back(static_cast<std::uint32_t>(random.Below(c.spec.NumClasses())));
    }
    const auto device = MakeCpuDevice(1);
    Model network(c.spec, *device);
    Tensor inputs = ToTensor(x, c.spec.num_inputs);
    const Tensor flat = ToTensor(parameters, 1);
    Tensor gradient({parameters.size()});

    const double loss =
        network.LossAndGradient(flat.Values(), {.inputs = inputs.AsMatrix(), .labels = labels},
                                {.divisor = static_cast<double>(rows)}, gradient.Values());

    CHECK(loss / static_cast<double>(rows) ==
          doctest::Approx(PlainLoss(c.spec, parameters, x, labels)).epsilon(1e-5));
    CHECK(network.Loss(flat.Values(), {.inputs = inputs.AsMatrix(), .labels = labels}) ==
          doctest::Approx(loss));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      CAPTURE(i);
      auto up = parameters;
      auto down = parameters;
      up[i] += 1e-5;
      down[i] -= 1e-5;
      const double want =
          (PlainLoss(c.spec, up, x, labels) - PlainLoss(c.spec, down, x, labels)) / 2e-5;
      CHECK(std::fabs(static_cast<double>(gradient.Values()[i]) - want) < 2e-5);
    }
  }
}

TEST_CASE("Network: tensors are named and ordered as plans name them") {
  const auto names = [](const NetworkSpec& spec) {
    std::vector<std::string> out;
    const ParameterLayout layout = LayoutOf(spec);
    for (const ParameterView& view : layout.Views()) {
      std::string shape;
      for (const std::uint64_t size : view.shape) {
        shape += " " + std::to_string(size);
      }
      out.push_back(view.name + shape + (view.role == ParameterRole::kBias ? " bias" : "") +
                    " at " + std::to_string(view.offset));
    }
    return out;
  };
  CHECK(names({.num_inputs = 13, .hidden = {}, .num_outputs = 1}) ==
        std::vector<std::string>{"weight 13 at 0", "bias 1 bias at 13"});
  CHECK(names({.num_inputs = 2, .hidden = {}, .num_outputs = 3}) ==
        std::vector<std::string>{"weight 2 3 at 0", "bias 3 bias at 6"});
  CHECK(
      names({.num_inputs = 4, .hidden = {8}, .activation = Activation::kTanh, .num_outputs = 1}) ==
      std::vector<std::string>{"layer0.weight 4 8 at 0", "layer0.bias 8 bias at 32",
                               "layer1.weight 8 1 at 40", "layer1.bias 1 bias at 48"});
}

TEST_CASE("Network: L2 pulls weights and leaves biases alone") {
  const NetworkSpec spec = {
      .num_inputs = 2, .hidden = {2}, .activation = Activation::kTanh, .num_outputs = 1};
  const auto device = MakeCpuDevice(1);
  Model network(spec, *device);
  std::vector<float> parameters(LayoutOf(spec).NumParameters(), 2.0F);
  std::vector<float> gradient(parameters.size(), 1.0F);

  network.AddL2(0.25, parameters, gradient);

  const ParameterLayout layout = LayoutOf(spec);
  for (const ParameterView& view : layout.Views()) {
    for (std::size_t i = 0; i < view.size; ++i) {
      CHECK(gradient[view.offset + i] == (view.role == ParameterRole::kBias ? 1.0F : 1.5F));
    }
  }
}

TEST_CASE("Network: specs without meaning are refused") {
  const NetworkSpec bad[] = {
      {.num_inputs = 0, .hidden = {}, .num_outputs = 1},
      {.num_inputs = 1, .hidden = {}, .num_outputs = 0},
      {.num_inputs = 1, .hidden = {3}, .num_outputs = 1},
      {.num_inputs = 1, .hidden = {0}, .activation = Activation::kTanh, .num_outputs = 1},
      {.num_inputs = std::size_t{1} << 62U, .hidden = {}, .num_outputs = 8},
      {.num_inputs = std::size_t{1} << 31U, .hidden = {}, .num_outputs = 1},
  };
  for (const NetworkSpec& spec : bad) {
    CHECK(CheckSpec(spec).code() == StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace domicile::models
