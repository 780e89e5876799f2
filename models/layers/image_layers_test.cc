// Convolutions, pools and the norms of images.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "models/layers/batch_norm.h"
#include "models/layers/conv2d.h"
#include "models/layers/group_norm.h"
#include "models/layers/pool2d.h"
#include "models/layers/testing.h"

namespace domicile::models {
namespace {

Tensor Random(std::uint64_t seed, std::size_t rows, std::size_t columns) {
  Tensor tensor({rows, columns});
  const std::vector<float> values = TestNumbers(seed, rows * columns, 1);
  std::copy(values.begin(), values.end(), tensor.Values().begin());
  return tensor;
}

void Set(LayerUnderTest& test, const std::string& name, const Golden& array) {
  const std::vector<float> values = GoldenValues(array);
  REQUIRE(values.size() == test.Values(name).size());
  std::copy(values.begin(), values.end(), test.Values(name).begin());
}

// Element (channel, y, x) of row `row`, straight from the definition of a convolution.
double PlainConvolution(const ConvShape& s, std::span<const float> image,
                        std::span<const float> weight, double bias, std::size_t filter,
                        std::size_t oy, std::size_t ox) {
  double sum = bias;
  for (std::size_t c = 0; c < s.channels; ++c) {
    for (std::size_t ky = 0; ky < s.kernel; ++ky) {
      for (std::size_t kx = 0; kx < s.kernel; ++kx) {
        const std::size_t y = oy * s.stride + ky;
        const std::size_t x = ox * s.stride + kx;
        if (y < s.padding || x < s.padding || y - s.padding >= s.height ||
            x - s.padding >= s.width) {
          continue;
        }
        sum +=
            static_cast<double>(image[(c * s.height + y - s.padding) * s.width + x - s.padding]) *
            static_cast<double>(
                weight[((filter * s.channels + c) * s.kernel + ky) * s.kernel + kx]);
      }
    }
  }
  return sum;
}

TEST_CASE("Conv2d: output and gradients agree with PyTorch") {
  for (const char* name : {"conv2d_same", "conv2d_stride2"}) {
    CAPTURE(name);
    const Golden& c = GoldenCase(name);
    const std::size_t stride = std::string(name) == "conv2d_same" ? 1 : 2;
    LayerUnderTest test(MakeConv2d({.name = "conv",
                                    .shape = MakeConvShape({.channels = 2,
                                                            .height = 5,
                                                            .width = 5,
                                                            .filters = 3,
                                                            .kernel = 3,
                                                            .stride = stride,
                                                            .padding = 1})}));
    Set(test, "conv.weight", c.at("inputs").at("K"));
    Set(test, "conv.bias", c.at("inputs").at("b"));
    const Tensor x = GoldenTensor(c.at("inputs").at("x"), {2, 50});

    const Tensor y = test.Forward(x);
    const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {2, y.shape()[1]}));

    CheckGolden(y.Values(), c.at("output"));
    CheckGolden(dx.Values(), c.at("grads").at("x"));
    CheckGolden(test.GradientOf("conv.weight"), c.at("grads").at("K"));
    CheckGolden(test.GradientOf("conv.bias"), c.at("grads").at("b"));
  }
}

TEST_CASE("Conv2d: odd strides, paddings and sizes agree with the definition and differences") {
  const ConvShape shapes[] = {
      {.channels = 1,
       .height = 4,
       .width = 7,
       .filters = 2,
       .kernel = 3,
       .stride = 3,
       .padding = 2},
      {.channels = 3,
       .height = 6,
       .width = 5,
       .filters = 2,
       .kernel = 4,
       .stride = 2,
       .padding = 3},
      {.channels = 2,
       .height = 3,
       .width = 3,
       .filters = 1,
       .kernel = 3,
       .stride = 1,
       .padding = 0},
      {.channels = 2,
       .height = 1,
       .width = 6,
       .filters = 3,
       .kernel = 1,
       .stride = 2,
       .padding = 0},
  };
  for (const ConvShape& basic : shapes) {
    CAPTURE(basic.height);
    CAPTURE(basic.width);
    CAPTURE(basic.padding);
    const ConvShape shape = MakeConvShape(basic);
    const std::size_t inputs = shape.channels * shape.height * shape.width;
    LayerUnderTest test(MakeConv2d({.name = "c", .shape = shape, .activation = Activation::kTanh}));
    test.Randomise(3);
    const Tensor x = Random(4, 3, inputs);

    const Tensor y = test.Forward(x);

    for (std::size_t row = 0; row < 3; ++row) {
      std::size_t at = 0;
      for (std::size_t f = 0; f < shape.filters; ++f) {
        for (std::size_t oy = 0; oy < shape.out_height; ++oy) {
          for (std::size_t ox = 0; ox < shape.out_width; ++ox, ++at) {
            const double want = std::tanh(PlainConvolution(
                shape, x.Values().subspan(row * inputs, inputs), test.Values("c.weight"),
                static_cast<double>(test.Values("c.bias")[f]), f, oy, ox));
            CHECK(static_cast<double>(y.Values()[row * shape.outputs + at]) ==
                  doctest::Approx(want).epsilon(1e-5));
          }
        }
      }
    }
    test.CheckGradients(x, 5);
  }
}

TEST_CASE(
    "Pool2d: maximum and average agree with PyTorch, the first of equals taking the gradient") {
  for (const char* name : {"maxpool2", "maxpool2_ties", "avgpool2"}) {
    CAPTURE(name);
    const Golden& c = GoldenCase(name);
    const PoolKind kind = std::string(name) == "avgpool2" ? PoolKind::kAverage : PoolKind::kMax;
    LayerUnderTest test(MakePool2d(
        kind, MakePoolShape({.channels = 1, .height = 4, .width = 4, .window = 2, .stride = 2})));
    const Tensor x = GoldenTensor(c.at("inputs").at("x"), {1, 16});

    CheckGolden(test.Forward(x).Values(), c.at("output"));
    const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {1, 4}));

    CheckGolden(dx.Values(), c.at("grads").at("x"));
  }
}

TEST_CASE("Pool2d: windows that overlap or leave a rim have the gradients of differences") {
  for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    LayerUnderTest test(MakePool2d(
        kind, MakePoolShape({.channels = 2, .height = 6, .width = 5, .window = 3, .stride = 2})));
    test.CheckGradients(Random(8, 2, 60), 9);
  }
}

TEST_CASE("GroupNorm: output and gradients agree with PyTorch") {
  const Golden& c = GoldenCase("groupnorm_2");
  LayerUnderTest test(MakeGroupNorm("norm", {.groups = 2, .channels = 4, .positions = 3}));
  Set(test, "norm.weight", c.at("inputs").at("gamma"));
  Set(test, "norm.bias", c.at("inputs").at("beta"));
  const Tensor x = GoldenTensor(c.at("inputs").at("x"), {2, 12});

  CheckGolden(test.Forward(x).Values(), c.at("output"));
  const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {2, 12}));

  CheckGolden(dx.Values(), c.at("grads").at("x"));
  CheckGolden(test.GradientOf("norm.weight"), c.at("grads").at("gamma"));
  CheckGolden(test.GradientOf("norm.bias"), c.at("grads").at("beta"));
}

TEST_CASE("GroupNorm: gradients are those of differences, also when rows are cut into pieces") {
  LayerUnderTest test(MakeGroupNorm("norm", {.groups = 3, .channels = 6, .positions = 5}));
  test.Randomise(1);
  test.CheckGradients(Random(2, 9, 30), 3);
}

TEST_CASE("BatchNorm: output, gradients and running statistics agree with PyTorch") {
  const Golden& c = GoldenCase("batchnorm_train");
  LayerUnderTest test(MakeBatchNorm({.name = "norm", .channels = 3}));
  Set(test, "norm.weight", c.at("inputs").at("gamma"));
  Set(test, "norm.bias", c.at("inputs").at("beta"));
  std::fill(test.Values("norm.running_var").begin(), test.Values("norm.running_var").end(), 1.0F);
  test.pass.training = true;
  test.pass.divisor = 5;
  const Tensor x = GoldenTensor(c.at("inputs").at("x"), {5, 3});

  CheckGolden(test.Forward(x).Values(), c.at("output"));
  const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {5, 3}));
  test.layer->UpdateStatistics(test.device(), 5, test.gradient, test.parameters);

  CheckGolden(dx.Values(), c.at("grads").at("x"));
  CheckGolden(test.GradientOf("norm.weight"), c.at("grads").at("gamma"));
  CheckGolden(test.GradientOf("norm.bias"), c.at("grads").at("beta"));
  const auto golden_list = [&c](const char* key) {
    return c.at(key).is_array() ? Golden{{"data", c.at(key)}} : c.at(key);
  };
  CheckGolden(test.Values("norm.running_mean"), golden_list("running_mean"));
  CheckGolden(test.Values("norm.running_var"), golden_list("running_var"));
}

TEST_CASE("BatchNorm: gradients are those of differences, by the batch and by stored statistics") {
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kFrozen}) {
    LayerUnderTest test(
        MakeBatchNorm({.name = "norm", .channels = 2, .positions = 3, .mode = mode}));
    test.Randomise(6);
    test.pass.training = true;
    test.pass.divisor = 4;
    test.CheckGradients(Random(7, 4, 6), 8);
    if (mode == BatchNormMode::kFrozen) {
      const std::vector<float> before = test.parameters;
      test.layer->UpdateStatistics(test.device(), 4, test.gradient, test.parameters);
      CHECK(test.parameters == before);
    }
  }
}

TEST_CASE("BatchNorm: the statistics of slices add up to those of the whole batch") {
  const Tensor x = Random(11, 10, 6);
  const auto statistics = [&x](const std::vector<std::size_t>& slices) {
    LayerUnderTest test(MakeBatchNorm({.name = "norm", .channels = 2, .positions = 3}));
    test.Randomise(12);
    test.pass.training = true;
    test.pass.divisor = 10;
    std::vector<float> sum(test.parameters.size(), 0.0F);
    std::size_t first = 0;
    for (const std::size_t count : slices) {
      Tensor part({count, 6});
      std::copy_n(x.Values().begin() + static_cast<std::ptrdiff_t>(first * 6), count * 6,
                  part.Values().begin());
      test.Backward(part, Tensor({count, 6}));
      std::transform(sum.begin(), sum.end(), test.gradient.begin(), sum.begin(), std::plus<>());
      first += count;
    }
    test.layer->UpdateStatistics(test.device(), 10, sum, test.parameters);
    std::vector<float> out(test.Values("norm.running_mean").begin(),
                           test.Values("norm.running_mean").end());
    out.insert(out.end(), test.Values("norm.running_var").begin(),
               test.Values("norm.running_var").end());
    return out;
  };
  const std::vector<float> whole = statistics({10});
  const std::vector<float> parts = statistics({3, 6, 1});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(parts[i] == doctest::Approx(whole[i]).epsilon(1e-5));
  }
}

TEST_CASE("Moments: pooled variance has the term between the sites") {
  // 1, 3 at one site and 11, 13, 15 at another, about an origin that is public.
  const MomentSums a = SumsOf(2, 2, 1, 5);
  const MomentSums b = SumsOf(3, 13, 8.0 / 3, 5);

  const auto pooled = MomentsOf({a.count + b.count, a.first + b.first, a.second + b.second}, 5);

  REQUIRE(pooled.ok());
  CHECK(pooled->mean == doctest::Approx(8.6));
  CHECK(pooled->variance == doctest::Approx(31.04));
  CHECK(MomentsOf({}, 5).status().code() == StatusCode::kInvalidArgument);
  CHECK(MomentsOf({1, NAN, 0}, 5).status().code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace domicile::models
