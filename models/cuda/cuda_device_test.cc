// Every operation against the CPU's, with operands in host memory and in the device's.
#include "models/cuda/cuda_device.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/layers/conv2d.h"
#include "models/layers/pool2d.h"
#include "models/layers/testing.h"

namespace domicile::models {
namespace {

using Tensors = std::vector<Tensor>;
using Operation = std::function<void(Device&, Tensors&)>;

Tensor Random(std::uint64_t seed, std::size_t rows, std::size_t columns) {
  Tensor tensor({rows, columns});
  const std::vector<float> values = TestNumbers(seed, rows * columns, 1);
  std::copy(values.begin(), values.end(), tensor.Values().begin());
  return tensor;
}

Tensors RandomAll(const std::vector<std::pair<std::size_t, std::size_t>>& shapes) {
  Tensors tensors;
  for (const auto& [rows, columns] : shapes) {
    tensors.push_back(Random(tensors.size() + 1, rows, columns));
  }
  return tensors;
}

Tensor MovedTo(Memory& memory, const Tensor& tensor) {
  Tensor moved(tensor.shape(), memory);
  Copy(memory, tensor.Values(), moved.Values());
  return moved;
}

// Within `tolerance` of the largest magnitude, or the very bits for a tolerance of 0.
void CheckNear(std::span<const float> got, std::span<const float> want, double tolerance) {
  REQUIRE(got.size() == want.size());
  double largest = 0;
  double worst = 0;
  bool finite = true;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(want[i])));
    worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    finite = finite && std::isfinite(got[i]);
  }
  CHECK(finite);
  CHECK(worst <= tolerance * std::max(largest, 1e-3));
}

// Runs the operation on the CPU, and on the device with the tensors in either memory; afterwards
// all tensors must agree, inputs among them.
void Compare(const std::string& name, const Tensors& tensors, const Operation& operation,
             double tolerance = 2e-5) {
  CAPTURE(name);
  const auto cpu = MakeCpuDevice(1);
  Tensors want = tensors;
  operation(*cpu, want);

  const auto device = MakeTestDevice();
  Tensors here = tensors;
  operation(*device, here);
  Tensors there;
  for (const Tensor& tensor : tensors) {
    there.push_back(MovedTo(device->memory(), tensor));
  }
  operation(*device, there);
  CHECK(device->Check().ok());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    const std::span<const float> values = std::as_const(want[i]).Values();
    CheckNear(here[i].Values(), values, tolerance);
    Tensor back(there[i].shape());
    Copy(device->memory(), std::as_const(there[i]).Values(), back.Values());
    CheckNear(back.Values(), values, tolerance);
  }
}

Weight WeightOf(const Tensor& w, std::size_t inputs, std::size_t outputs, WeightLayout layout) {
  return {w.Values().data(), inputs, outputs, layout};
}

TEST_CASE("CudaDevice: dense layers and their gradients are those of the CPU") {
  const struct {
    std::size_t rows, inputs, outputs;
  } shapes[] = {{1, 1, 1}, {3, 5, 7}, {33, 17, 1}, {300, 4, 10}, {64, 65, 66}, {0, 4, 3}};
  for (const auto& s : shapes) {
    CAPTURE(s.rows);
    CAPTURE(s.outputs);
    for (const WeightLayout layout : {WeightLayout::kInOut, WeightLayout::kOutIn}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kTanh, Activation::kSigmoid}) {
        Compare(
            "dense",
            RandomAll(
                {{s.rows, s.inputs}, {s.inputs, s.outputs}, {1, s.outputs}, {s.rows, s.outputs}}),
            [&](Device& device, Tensors& t) {
              device.Dense(t[0].AsMatrix(), WeightOf(t[1], s.inputs, s.outputs, layout),
                           t[2].Values(), activation, t[3].AsMatrix());
            });
      }
      for (const bool accumulate : {false, true}) {
        Compare("dense input gradient",
                RandomAll({{s.rows, s.outputs}, {s.inputs, s.outputs}, {s.rows, s.inputs}}),
                [&](Device& device, Tensors& t) {
                  device.DenseInputGradient(t[0].AsMatrix(),
                                            WeightOf(t[1], s.inputs, s.outputs, layout), accumulate,
                                            t[2].AsMatrix());
                });
      }
    }
    Compare("dense without bias",
            RandomAll({{s.rows, s.inputs}, {s.inputs, s.outputs}, {s.rows, s.outputs}}),
            [&](Device& device, Tensors& t) {
              device.Dense(t[0].AsMatrix(),
                           WeightOf(t[1], s.inputs, s.outputs, WeightLayout::kInOut), {},
                           Activation::kRelu, t[2].AsMatrix());
            });
    Compare("dense weight gradient",
            RandomAll({{s.rows, s.inputs}, {s.rows, s.outputs}, {s.inputs, s.outputs}}),
            [](Device& device, Tensors& t) {
              device.DenseWeightGradient(t[0].AsMatrix(), t[1].AsMatrix(), t[2].AsMatrix());
            });
    Compare("dense bias gradient", RandomAll({{s.rows, s.outputs}, {1, s.outputs}}),
            [](Device& device, Tensors& t) {
              device.DenseBiasGradient(t[0].AsMatrix(), t[1].Values());
            });
  }
}

TEST_CASE("CudaDevice: an operand that begins at an odd place is right, too") {
  // A bias in the middle of the flat vector of parameters is aligned to a float alone.
  Compare("dense", RandomAll({{5, 3}, {1, 40}, {5, 7}}), [](Device& device, Tensors& t) {
    device.Dense(t[0].AsMatrix(), {t[1].Values().data() + 1, 3, 7, WeightLayout::kInOut},
                 t[1].Values().subspan(25, 7), Activation::kRelu, t[2].AsMatrix());
  });
}

TEST_CASE("CudaDevice: activations and their gradients are those of the CPU") {
  for (const Activation activation :
       {Activation::kNone, Activation::kTanh, Activation::kRelu, Activation::kSigmoid,
        Activation::kGelu, Activation::kGeluTanh}) {
    CAPTURE(static_cast<int>(activation));
    Compare("activation", RandomAll({{9, 101}, {9, 101}, {9, 101}}),
            [activation](Device& device, Tensors& t) {
              device.Scale(4, t[0].Values());
              device.Activate(activation, t[0].AsMatrix(), t[1].AsMatrix());
              device.ActivationGradient(activation, t[0].AsMatrix(), t[2].AsMatrix());
            });
  }
}

TEST_CASE("CudaDevice: dropout drops the very elements that the CPU drops") {
  for (const float rate : {0.0F, 0.1F, 0.5F, 0.999F}) {
    Compare(
        "dropout", RandomAll({{40, 100}, {40, 100}}),
        [rate](Device& device, Tensors& t) {
          const DropoutMask mask = {.key = 0x123456789ABCDEF0U, .first = 1U << 20U, .rate = rate};
          device.Dropout(mask, t[0].AsMatrix(), t[1].AsMatrix());
          device.Dropout(mask, t[1].AsMatrix(), t[1].AsMatrix());  // in place
        },
        0);
  }
}

TEST_CASE("CudaDevice: convolutions and their gradients are those of the CPU") {
  const ConvShape shapes[] = {
      {.channels = 1, .height = 5, .width = 5, .filters = 1, .kernel = 1},
      {.channels = 2, .height = 7, .width = 6, .filters = 3, .kernel = 3, .padding = 1},
      {.channels = 3,
       .height = 8,
       .width = 9,
       .filters = 4,
       .kernel = 3,
       .stride = 2,
       .padding = 2},
      {.channels = 1, .height = 9, .width = 9, .filters = 2, .kernel = 4, .stride = 3}};
  for (const ConvShape& plain : shapes) {
    const ConvShape s = MakeConvShape(plain);
    const std::size_t inputs = s.channels * s.height * s.width;
    CAPTURE(s.kernel);
    for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{11}}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
        Compare(
            "conv2d",
            RandomAll({{rows, inputs}, {s.filters, s.patch}, {1, s.filters}, {rows, s.outputs}}),
            [&](Device& device, Tensors& t) {
              device.Conv2d(s, t[0].AsMatrix(), t[1].Values(), t[2].Values(), activation,
                            t[3].AsMatrix());
            });
      }
      Compare("conv2d gradients",
              RandomAll({{rows, inputs},
                         {rows, s.outputs},
                         {s.filters, s.patch},
                         {1, s.filters},
                         {s.filters, s.patch},
                         {rows, inputs}}),
              [&](Device& device, Tensors& t) {
                device.Conv2dWeightGradient(s, t[0].AsMatrix(), t[1].AsMatrix(), t[2].Values(),
                                            t[3].Values());
                device.Conv2dInputGradient(s, t[1].AsMatrix(), t[4].Values(), t[5].AsMatrix());
              });
    }
  }
}

TEST_CASE("CudaDevice: pools and their gradients are those of the CPU") {
  const PoolShape shapes[] = {
      {.channels = 2, .height = 6, .width = 4, .window = 2, .stride = 2},
      {.channels = 3, .height = 7, .width = 5, .window = 3, .stride = 2},   // windows overlap
      {.channels = 1, .height = 7, .width = 8, .window = 2, .stride = 3}};  // and leave gaps
  for (const PoolShape& plain : shapes) {
    const PoolShape s = MakePoolShape(plain);
    const std::size_t inputs = s.channels * s.height * s.width;
    const std::size_t rows = 5;
    std::vector<std::vector<std::uint32_t>> all_chosen;
    Compare(
        "max pool", RandomAll({{rows, inputs}, {rows, s.outputs}, {rows, inputs}}),
        [&](Device& device, Tensors& t) {
          std::vector<std::uint32_t> chosen(rows * s.outputs);
          device.MaxPool(s, t[0].AsMatrix(), t[1].AsMatrix(), chosen);
          device.MaxPoolGradient(s, chosen, t[1].AsMatrix(), t[2].AsMatrix());
          all_chosen.push_back(chosen);
        },
        1e-6);
    REQUIRE(all_chosen.size() == 3);
    CHECK(all_chosen[1] == all_chosen[0]);
    CHECK(all_chosen[2] == all_chosen[0]);
    Compare(
        "average pool", RandomAll({{rows, inputs}, {rows, s.outputs}, {rows, inputs}}),
        [&](Device& device, Tensors& t) {
          device.AveragePool(s, t[0].AsMatrix(), t[1].AsMatrix());
          device.AveragePoolGradient(s, t[1].AsMatrix(), t[2].AsMatrix());
        },
        1e-6);
  }
}

TEST_CASE("CudaDevice: group and layer norm and their gradients are those of the CPU") {
  const NormShape shapes[] = {{.groups = 1, .channels = 48},
                              {.groups = 4, .channels = 12},
                              {.groups = 2, .channels = 6, .positions = 35},
                              {.groups = 3, .channels = 3, .positions = 4}};
  for (const NormShape& s : shapes) {
    CAPTURE(s.channels);
    const std::size_t columns = s.channels * s.positions;
    const std::size_t rows = 300;
    for (const bool wants_scale : {true, false}) {
      Compare("group norm",
              RandomAll({{rows, columns},
                         {1, s.channels},
                         {1, s.channels},
                         {rows, columns},
                         {rows, 2 * s.groups},
                         {rows, columns},
                         {1, s.channels},
                         {1, s.channels}}),
              [&](Device& device, Tensors& t) {
                device.GroupNorm(s, t[0].AsMatrix(), t[1].Values(), t[2].Values(), t[3].AsMatrix(),
                                 t[4].Values());
                const auto place = [&](Tensor& tensor) {
                  return wants_scale ? tensor.Values() : std::span<float>();
                };
                device.GroupNormGradient(s, t[0].AsMatrix(), t[1].Values(), t[4].Values(),
                                         t[5].AsMatrix(), t[5].AsMatrix(), place(t[6]),
                                         place(t[7]));
              });
    }
  }
}

TEST_CASE("CudaDevice: sums and affine maps by channel are those of the CPU") {
  const std::size_t channels = 5;
  const std::size_t positions = 21;
  const std::size_t rows = 37;
  std::vector<std::vector<double>> sums;
  Compare("channels",
          RandomAll({{rows, channels * positions},
                     {1, channels},
                     {rows, channels * positions},
                     {1, channels},
                     {1, channels},
                     {rows, channels * positions}}),
          [&](Device& device, Tensors& t) {
            std::vector<double> first(channels);
            std::vector<double> second(channels);
            device.ChannelSums(t[0].AsMatrix(), t[1].Values(), t[2].AsMatrix(), t[3].Values(),
                               first, second);
            sums.push_back(first);
            sums.back().insert(sums.back().end(), second.begin(), second.end());
            device.ChannelAffine(t[0].AsMatrix(), t[1].Values(), t[2].AsMatrix(), t[3].Values(),
                                 t[4].Values(), t[5].AsMatrix());
            device.ChannelAffine(t[5].AsMatrix(), t[1].Values(), {}, t[3].Values(), t[4].Values(),
                                 t[5].AsMatrix());
          });
  for (std::size_t i = 0; i < sums[0].size(); ++i) {
    CHECK(sums[1][i] == doctest::Approx(sums[0][i]).epsilon(1e-9));
    CHECK(sums[2][i] == doctest::Approx(sums[0][i]).epsilon(1e-9));
  }
}

TEST_CASE("CudaDevice: rows are gathered, and added up in the CPU's order") {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 200; ++i) {
    ids.push_back(i * i % 23);
  }
  Compare(
      "gather and scatter", RandomAll({{23, 17}, {200, 17}, {200, 17}, {23, 17}}),
      [&ids](Device& device, Tensors& t) {
        device.Gather(t[0].AsMatrix(), ids, false, t[1].AsMatrix());
        device.Gather(t[0].AsMatrix(), ids, true, t[2].AsMatrix());
        device.ScatterAdd(ids, t[2].AsMatrix(), t[3].AsMatrix());
      },
      0);
}

TEST_CASE("CudaDevice: the means of tokens and their gradient are those of the CPU") {
  const std::size_t length = 6;
  std::vector<std::uint8_t> mask(4 * length, 1);
  mask[3] = mask[4] = mask[5] = 0;
  std::fill(mask.begin() + 2 * length, mask.begin() + 3 * length, std::uint8_t{0});
  for (const bool masked : {false, true}) {
    Compare("mean of tokens", RandomAll({{4 * length, 9}, {4, 9}, {4 * length, 9}}),
            [&](Device& device, Tensors& t) {
              const auto kept =
                  masked ? std::span<const std::uint8_t>(mask) : std::span<const std::uint8_t>();
              device.MeanOfTokens(t[0].AsMatrix(), length, kept, t[1].AsMatrix());
              device.MeanOfTokensGradient(t[1].AsMatrix(), length, kept, t[2].AsMatrix());
            });
  }
}

TEST_CASE("CudaDevice: attention and its gradients are those of the CPU") {
  struct {
    std::size_t sequences;
    AttentionShape shape;
    float dropout;
    bool masked;
  } cases[] = {{1, {.length = 3, .heads = 1, .width = 2}, 0, false},
               {2, {.length = 5, .heads = 3, .width = 4}, 0, true},  // fewer sequences than heads
               {5, {.length = 9, .heads = 2, .width = 8}, 0.3F, true},
               {3, {.length = 40, .heads = 2, .width = 6, .causal = true}, 0.2F, false}};
  for (const auto& c : cases) {
    CAPTURE(c.sequences);
    const AttentionShape& s = c.shape;
    const std::size_t rows = c.sequences * s.length;
    const std::size_t columns = s.heads * s.width;
    std::vector<std::uint8_t> mask(c.masked ? rows : 0, 1);
    for (std::size_t i = 0; i < mask.size(); ++i) {
      mask[i] = i % s.length > s.length / 2 || i < s.length ? 0 : 1;  // the first sequence: none
    }
    const DropoutMask dropout = {.key = 99, .first = 12345, .rate = c.dropout};
    Compare("attention",
            RandomAll({{rows, columns},
                       {rows, columns},
                       {rows, columns},
                       {rows * s.heads, s.length},
                       {rows, columns},
                       {rows, columns},
                       {rows, columns},
                       {rows, columns},
                       {rows, columns}}),
            [&](Device& device, Tensors& t) {
              device.Attention(s, t[0].AsMatrix(), t[1].AsMatrix(), t[2].AsMatrix(), mask, dropout,
                               t[3].Values(), t[4].AsMatrix());
              device.AttentionGradient(s, t[0].AsMatrix(), t[1].AsMatrix(), t[2].AsMatrix(),
                                       t[3].Values(), dropout, t[5].AsMatrix(), t[6].AsMatrix(),
                                       t[7].AsMatrix(), t[8].AsMatrix());
            });
  }
}

TEST_CASE("CudaDevice: losses and their gradients are those of the CPU") {
  std::vector<std::vector<double>> losses;
  for (const std::size_t classes : {std::size_t{1}, std::size_t{2}, std::size_t{50}}) {
    const std::size_t rows = 70;
    std::vector<std::uint32_t> labels;
    for (std::uint32_t i = 0; i < rows; ++i) {
      labels.push_back(i % static_cast<std::uint32_t>(std::max<std::size_t>(classes, 2)));
    }
    losses.emplace_back();
    Compare(
        "losses", RandomAll({{rows, classes}, {rows, classes}, {rows, classes}, {rows, classes}}),
        [&](Device& device, Tensors& t) {
          device.Scale(30, t[0].Values());
          const auto entropy = [&](Matrix dz) {
            return classes == 1 ? device.BinaryCrossEntropy(t[0].AsMatrix(), labels, 0.25F, dz)
                                : device.SoftmaxCrossEntropy(t[0].AsMatrix(), labels, 0.25F, dz);
          };
          losses.back().push_back(entropy(t[1].AsMatrix()));
          losses.back().push_back(entropy({}));
          losses.back().push_back(
              device.SquaredError(t[0].AsMatrix(), t[2].AsMatrix(), 0.5F, t[3].AsMatrix()));
          losses.back().push_back(device.SquaredNorm(t[0].Values()));
        });
    const std::vector<double>& found = losses.back();
    REQUIRE(found.size() == 12);
    for (std::size_t i = 0; i < 12; ++i) {
      CHECK(found[i] == doctest::Approx(found[i % 4]).epsilon(1e-6));
    }
  }
}

TEST_CASE("CudaDevice: long vectors and optimizers are those of the CPU") {
  const std::size_t size = 40'003;
  std::vector<double> norms;
  Compare("vectors", RandomAll({{1, size}, {1, size}, {1, size}}), [&](Device& device, Tensors& t) {
    device.AddScaled(0.5F, t[0].Values(), t[1].Values());
    device.Add(t[0].Values(), t[1].Values(), t[2].Values());
    device.Scale(-3, t[2].Values());
    norms.push_back(device.SquaredNorm(t[2].Values()));
  });
  CHECK(norms[1] == doctest::Approx(norms[0]).epsilon(1e-9));
  CHECK(norms[2] == norms[1]);
  for (const bool nesterov : {false, true}) {
    Compare("sgd", RandomAll({{1, size}, {1, size}, {1, size}}), [&](Device& device, Tensors& t) {
      device.Sgd({.learning_rate = 0.1F,
                  .momentum = 0.9F,
                  .gradient_share = 0.8F,
                  .weight_decay = 0.01F,
                  .nesterov = nesterov},
                 t[0].Values(), t[1].Values(), t[2].Values());
    });
  }
  Tensors adam = RandomAll({{1, size}, {1, size}, {1, size}, {1, size}});
  for (float& second : adam[2].Values()) {
    second = second * second;
  }
  Compare("adam", adam, [](Device& device, Tensors& t) {
    device.Adam({.learning_rate = 0.01F,
                 .beta1 = 0.9F,
                 .beta2 = 0.999F,
                 .epsilon = 1e-8F,
                 .correction1 = 0.19F,
                 .correction2 = 0.002F,
                 .decoupled_decay = 0.1F},
                t[0].Values(), t[1].Values(), t[2].Values(), t[3].Values());
  });
}

}  // namespace
}  // namespace domicile::models
