// Whole models and optimizers: after several steps the parameters are those of the CPU.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/initial.h"
#include "models/layers/testing.h"
#include "models/model.h"
#include "models/optimizer.h"

namespace domicile::models {
namespace {

struct Examples {
  Tensor inputs;
  Tensor targets;
  std::vector<std::uint32_t> labels;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> types;
  std::vector<std::uint8_t> mask;

  Examples(const ModelSpec& model, std::size_t rows, std::size_t length)
      : inputs({rows, NumInputs(model)}), targets({rows, NumOutputs(model)}) {
    Fill(inputs, 1);
    Fill(targets, 2);
    const std::size_t outputs = std::max<std::size_t>(NumOutputs(model), 2);
    for (std::uint32_t row = 0; row < rows; ++row) {
      labels.push_back(row * 7 % static_cast<std::uint32_t>(outputs));
    }
    if (const auto* const encoder = std::get_if<EncoderSpec>(&model)) {
      for (std::uint32_t token = 0; token < rows * length; ++token) {
        ids.push_back(token * token % static_cast<std::uint32_t>(encoder->vocabulary));
        types.push_back(token / 3 % 2);
        mask.push_back(token % length < length - token / length % 3 ? 1 : 0);
      }
    }
    view.inputs = std::as_const(inputs).AsMatrix();
    view.labels = labels;
    if (!ids.empty()) {
      view.inputs = {};
      view.tokens = {.ids = ids, .types = types, .mask = mask, .length = length};
    }
    if (LossOf(model) == LossKind::kSquaredError) {
      view.labels = {};
      view.targets = std::as_const(targets).AsMatrix();
    }
  }

  static void Fill(Tensor& tensor, std::uint64_t seed) {
    const std::vector<float> values = TestNumbers(seed, tensor.NumElements(), 1);
    std::copy(values.begin(), values.end(), tensor.Values().begin());
  }

  BatchView view;
};

struct Trained {
  std::vector<float> parameters;
  std::vector<double> losses;
};

Trained Train(Device& device, const ModelSpec& spec, const OptimizerSpec& optimizer_spec) {
  const Examples examples(spec, 7, 6);
  REQUIRE(CheckBatch(spec, examples.view).ok());
  Model model(spec, device);
  const std::vector<float> initial = InitialParameters(spec, 11);
  Tensor parameters({initial.size()}, device.memory());
  Tensor gradient({initial.size()}, device.memory());
  Copy(device.memory(), std::span<const float>(initial), parameters.Values());
  const auto trained = model.TrainedRanges();
  Optimizer optimizer(optimizer_spec, {trained.begin(), trained.end()}, device);
  Trained result;
  for (std::uint64_t step = 0; step < 4; ++step) {
    const StepPlace place = {.divisor = 7, .first_example = 0, .dropout_key = 100 + step};
    result.losses.push_back(
        model.LossAndGradient(parameters.Values(), examples.view, place, gradient.Values()));
    model.AddL2(0.01, parameters.Values(), gradient.Values());
    ClipByGlobalNorm(0.5, trained, gradient.Values(), device);
    optimizer.Step(gradient.Values(), parameters.Values());
    model.UpdateStatistics(7, gradient.Values(), parameters.Values());
  }
  result.losses.push_back(model.Loss(parameters.Values(), examples.view));
  result.parameters.resize(initial.size());
  Copy(device.memory(), std::as_const(parameters).Values(), std::span(result.parameters));
  CHECK(device.Check().ok());
  return result;
}

void TrainsAsOnTheCpu(const ModelSpec& spec, const OptimizerSpec& optimizer) {
  const auto cpu = MakeCpuDevice(1);
  const auto device = MakeTestDevice();
  const Trained want = Train(*cpu, spec, optimizer);
  const Trained got = Train(*device, spec, optimizer);
  for (std::size_t i = 0; i < want.losses.size(); ++i) {
    CHECK(got.losses[i] == doctest::Approx(want.losses[i]).epsilon(1e-4));
  }
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < want.parameters.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(got.parameters[i]) -
                                      static_cast<double>(want.parameters[i])));
    largest = std::max(largest, std::fabs(static_cast<double>(want.parameters[i])));
  }
  CHECK(worst <= 1e-4 * largest);
  CHECK(Train(*device, spec, optimizer).parameters == got.parameters);  // the same bits
}

const OptimizerSpec kSgd = {
    .kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 0.9, .nesterov = true};

TEST_CASE("CudaDevice: regressions and perceptrons train as on the CPU") {
  TrainsAsOnTheCpu(NetworkSpec{.num_inputs = 9, .hidden = {}, .num_outputs = 1}, kSgd);
  TrainsAsOnTheCpu(
      NetworkSpec{.num_inputs = 9, .hidden = {}, .num_outputs = 2, .loss = LossKind::kSquaredError},
      kSgd);
  for (const Activation activation : {Activation::kRelu, Activation::kTanh, Activation::kGelu}) {
    TrainsAsOnTheCpu(
        NetworkSpec{
            .num_inputs = 12, .hidden = {16, 8}, .activation = activation, .num_outputs = 3},
        {.kind = OptimizerKind::kAdamW,
         .learning_rate = 0.01,
         .epsilon = 1e-4,
         .weight_decay = 0.1});
  }
}

TEST_CASE("CudaDevice: convolutional networks train as on the CPU, whatever their norm") {
  for (const ImageNorm norm :
       {ImageNorm::kNone, ImageNorm::kGroup, ImageNorm::kBatch, ImageNorm::kFrozenBatch}) {
    CAPTURE(static_cast<int>(norm));
    TrainsAsOnTheCpu(ConvNetSpec{.channels = 2,
                                 .height = 9,
                                 .width = 8,
                                 .blocks = {{.filters = 4,
                                             .kernel = 3,
                                             .padding = 1,
                                             .norm = norm,
                                             .groups = 2,
                                             .pool_window = 2},
                                            {.filters = 6, .kernel = 2, .norm = norm, .groups = 3}},
                                 .hidden = {10},
                                 .dropout = 0.2F,
                                 .num_outputs = 4},
                     kSgd);
  }
}

TEST_CASE("CudaDevice: encoders train as on the CPU, with adapters too") {
  EncoderSpec spec = {.vocabulary = 40,
                      .positions = 8,
                      .types = 2,
                      .hidden = 12,
                      .layers = 2,
                      .heads = 3,
                      .intermediate = 20,
                      .dropout = 0.1F,
                      .num_outputs = 3};
  const OptimizerSpec adam = {
      .kind = OptimizerKind::kAdamW, .learning_rate = 1e-3, .epsilon = 1e-4};
  for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst}) {
    spec.pooling = pooling;
    spec.lora = {};
    TrainsAsOnTheCpu(spec, adam);
    spec.lora = {.rank = 2, .alpha = 4, .trains_a = true};
    TrainsAsOnTheCpu(spec, adam);
  }
}

}  // namespace
}  // namespace domicile::models
