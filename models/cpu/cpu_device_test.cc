#include "models/cpu/cpu_device.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"

namespace domicile::models {
namespace {

using Golden = nlohmann::json;

const Golden& Cases() {
  static const Golden cases = [] {
    std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/nn_gradients.json");
    return Golden::parse(file).at("cases");
  }();
  return cases;
}

const Golden& Case(const std::string& name) {
  for (const Golden& c : Cases()) {
    if (c.at("name") == name) {
      return c;
    }
  }
  FAIL("no such case: ", name);
  return Cases();
}

Tensor ToTensor(const Golden& json, std::vector<std::size_t> shape) {
  Tensor tensor(std::move(shape));
  const auto values = json.at("data").get<std::vector<double>>();
  REQUIRE(values.size() == tensor.NumElements());
  std::transform(values.begin(), values.end(), tensor.Values().begin(),
                 [](double v) { return static_cast<float>(v); });
  return tensor;
}

Tensor ToTensor(const Golden& json) {
  return ToTensor(json, json.at("shape").get<std::vector<std::size_t>>());
}

Weight InOut(const Tensor& w) {
  return {.data = w.Values().data(), .inputs = w.shape()[0], .outputs = w.shape()[1]};
}

// Within 2e-5 of the largest magnitude, as the vectors say.
void CheckClose(std::span<const float> got, const Golden& json) {
  const auto want = json.at("data").get<std::vector<double>>();
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

TEST_CASE("CpuDevice: softmax cross-entropy agrees with PyTorch, also for large logits") {
  const auto device = MakeCpuDevice(1);
  for (const char* name : {"softmax_ce_mean", "softmax_ce_large_logits"}) {
    CAPTURE(name);
    const Golden& c = Case(name);
    Tensor z = ToTensor(c.at("inputs").at("x"));
    const auto labels = c.at("inputs").at("target").at("data").get<std::vector<std::uint32_t>>();
    const std::size_t rows = labels.size();
    Tensor dz({rows, z.NumElements() / rows});

    const double loss = device->SoftmaxCrossEntropy(z.AsMatrix(), labels,
                                                    1.0F / static_cast<float>(rows), dz.AsMatrix());

    const double want = c.at("output").at("data").at(0).get<double>();
    CHECK(loss / static_cast<double>(rows) == doctest::Approx(want).epsilon(2e-5));
    CheckClose(dz.Values(), c.at("grads").at("x"));
  }
}

TEST_CASE("CpuDevice: binary cross-entropy with logits agrees with PyTorch, also far out") {
  const auto device = MakeCpuDevice(1);
  std::size_t compared = 0;
  for (const char* name : {"bce_with_logits_mean", "bce_with_logits_extreme"}) {
    CAPTURE(name);
    const Golden& c = Case(name);
    const auto targets = c.at("inputs").at("y").at("data").get<std::vector<double>>();
    const auto logits = c.at("inputs").at("z").at("data").get<std::vector<double>>();
    const auto gradients = c.at("grads").at("z").at("data").get<std::vector<double>>();
    // The gradients of the first are of the mean, those of the second of the sum.
    const double rows =
        std::string(name) == "bce_with_logits_mean" ? static_cast<double>(targets.size()) : 1;
    // Our labels are classes: rows of the vectors with a soft target are left out.
    for (std::size_t row = 0; row < targets.size(); ++row) {
      if (targets[row] != 0.0 && targets[row] != 1.0) {
        continue;
      }
      Tensor z({1, 1});
      Tensor dz({1, 1});
      z.Values()[0] = static_cast<float>(logits[row]);
      const std::vector<std::uint32_t> label = {targets[row] == 1.0 ? 1U : 0U};

      const double loss = device->BinaryCrossEntropy(z.AsMatrix(), label, 1, dz.AsMatrix());

      const double wanted = std::max(logits[row], 0.0) - logits[row] * targets[row] +
                            std::log1p(std::exp(-std::fabs(logits[row])));
      CHECK(std::isfinite(loss));
      CHECK(loss == doctest::Approx(wanted).epsilon(1e-6));
      CHECK(static_cast<double>(dz.Values()[0]) ==
            doctest::Approx(gradients[row] * rows).epsilon(2e-5));
      ++compared;
    }
  }
  CHECK(compared >= 4);
}

TEST_CASE("CpuDevice: a dense layer and its gradients agree with PyTorch") {
  const auto device = MakeCpuDevice(1);
  const Golden& c = Case("linear");
  Tensor x = ToTensor(c.at("inputs").at("x"));
  const Tensor bias = ToTensor(c.at("inputs").at("b"));
  Tensor dy = ToTensor(c.at("cotangent"));
  // PyTorch's weight is [out, in], ours [in, out].
  const Tensor theirs = ToTensor(c.at("inputs").at("W"));
  Tensor w({4, 5});
  for (std::size_t in = 0; in < 4; ++in) {
    for (std::size_t out = 0; out < 5; ++out) {
      w.Values()[in * 5 + out] = theirs.Values()[out * 4 + in];
    }
  }
  Tensor y({3, 5});
  Tensor dw({4, 5});
  Tensor db({5});
  Tensor dx({3, 4});

  device->Dense(x.AsMatrix(), InOut(w), bias.Values(), Activation::kNone, y.AsMatrix());
  device->DenseWeightGradient(x.AsMatrix(), dy.AsMatrix(), dw.AsMatrix());
  device->DenseBiasGradient(dy.AsMatrix(), db.Values());
  device->DenseInputGradient(dy.AsMatrix(), InOut(w), false, dx.AsMatrix());

  CheckClose(y.Values(), c.at("output"));
  CheckClose(dx.Values(), c.at("grads").at("x"));
  CheckClose(db.Values(), c.at("grads").at("b"));
  Tensor dw_theirs({5, 4});
  for (std::size_t in = 0; in < 4; ++in) {
    for (std::size_t out = 0; out < 5; ++out) {
      dw_theirs.Values()[out * 4 + in] = dw.Values()[in * 5 + out];
    }
  }
  CheckClose(dw_theirs.Values(), c.at("grads").at("W"));
}

TEST_CASE("CpuDevice: activations and their gradients agree with PyTorch") {
  const struct {
    const char* name;
    Activation activation;
  } kinds[] = {
      {"tanh", Activation::kTanh}, {"relu", Activation::kRelu}, {"sigmoid", Activation::kSigmoid}};
  const auto device = MakeCpuDevice(1);
  for (const auto& kind : kinds) {
    CAPTURE(kind.name);
    const Golden& c = Case(kind.name);
    const std::size_t n = c.at("inputs").at("x").at("data").size();
    Tensor x = ToTensor(c.at("inputs").at("x"), {n, 1});
    Tensor dy = ToTensor(c.at("cotangent"), {n, 1});
    Tensor one({1, 1});
    one.Values()[0] = 1;
    const Tensor zero({1});
    Tensor y({n, 1});

    device->Dense(x.AsMatrix(), InOut(one), zero.Values(), kind.activation, y.AsMatrix());
    device->ActivationGradient(kind.activation, y.AsMatrix(), dy.AsMatrix());

    CheckClose(y.Values(), c.at("output"));
    CheckClose(dy.Values(), c.at("grads").at("x"));
  }
}

TEST_CASE("CpuDevice: matrix products agree with a plain loop at sizes that are cut into pieces") {
  const std::size_t rows = 150;
  const std::size_t ins = 300;
  const std::size_t outs = 70;
  SeededRandom random(5);
  const auto fill = [&random](Tensor& tensor) {
    for (float& value : tensor.Values()) {
      value = static_cast<float>(static_cast<double>(random.Below(2001)) / 1000.0 - 1.0);
    }
  };
  Tensor x({rows, ins});
  Tensor w({ins, outs});
  Tensor bias({outs});
  Tensor y({rows, outs});
  Tensor dw({ins, outs});
  fill(x);
  fill(w);
  fill(bias);

  const auto device = MakeCpuDevice(2);
  device->Dense(x.AsMatrix(), InOut(w), bias.Values(), Activation::kNone, y.AsMatrix());
  device->DenseWeightGradient(x.AsMatrix(), y.AsMatrix(), dw.AsMatrix());

  double worst_y = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < outs; ++o) {
      double sum = static_cast<double>(bias.Values()[o]);
      for (std::size_t i = 0; i < ins; ++i) {
        sum += static_cast<double>(x.Values()[r * ins + i]) *
               static_cast<double>(w.Values()[i * outs + o]);
      }
      worst_y = std::max(worst_y, std::fabs(sum - static_cast<double>(y.Values()[r * outs + o])));
    }
  }
  double worst_dw = 0;
  for (std::size_t i = 0; i < ins; ++i) {
    for (std::size_t o = 0; o < outs; ++o) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        sum += static_cast<double>(x.Values()[r * ins + i]) *
               static_cast<double>(y.Values()[r * outs + o]);
      }
      worst_dw =
          std::max(worst_dw, std::fabs(sum - static_cast<double>(dw.Values()[i * outs + o])));
    }
  }
  CHECK(worst_y < 1e-4);
  CHECK(worst_dw < 1e-3);
}

}  // namespace
}  // namespace domicile::models
