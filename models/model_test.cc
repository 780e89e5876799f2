// Whole models: convolutional networks and encoders, by their golden cases and by what must hold of
// every kind.
#include "models/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/initial.h"
#include "models/layers/attention.h"
#include "models/layers/dense.h"
#include "models/layers/sequence.h"
#include "models/layers/testing.h"
#include "models/strategy/strategy.h"

namespace domicile::models {
namespace {

const ConvNetSpec kSmallImages = {.channels = 1,
                                  .height = 8,
                                  .width = 8,
                                  .blocks = {{.filters = 4,
                                              .kernel = 3,
                                              .padding = 1,
                                              .norm = ImageNorm::kGroup,
                                              .groups = 2,
                                              .pool_window = 2},
                                             {.filters = 6, .kernel = 3}},
                                  .hidden = {10},
                                  .activation = Activation::kTanh,
                                  .num_outputs = 3};

const EncoderSpec kSmallEncoder = {.vocabulary = 20,
                                   .positions = 12,
                                   .types = 2,
                                   .hidden = 16,
                                   .layers = 2,
                                   .heads = 4,
                                   .intermediate = 24,
                                   .epsilon = 1e-5F,
                                   .num_outputs = 3};

// Owns a batch for either kind.
struct Examples {
  Examples(const ModelSpec& spec, std::size_t count) : inputs({count, NumInputs(spec)}) {
    const auto numbers = TestNumbers(3, inputs.NumElements() + 64 * count, 1);
    std::copy_n(numbers.begin(), inputs.NumElements(), inputs.Values().begin());
    for (std::size_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::uint32_t>(i % NumOutputs(spec)));
      for (std::size_t t = 0; t < kLength; ++t) {
        const float number = numbers[numbers.size() - 1 - i * kLength - t];
        ids.push_back(static_cast<std::uint32_t>((number + 1) * 9.9F));
        types.push_back(t < 4 ? 0 : 1);
        mask.push_back(t < 3 + i % (kLength - 2) ? 1 : 0);
      }
    }
    view.labels = labels;
    if (std::holds_alternative<EncoderSpec>(spec)) {
      view.tokens = {.ids = ids, .types = types, .mask = mask, .length = kLength};
    } else {
      view.inputs = inputs.AsMatrix();
    }
  }
  static constexpr std::size_t kLength = 7;
  Tensor inputs;
  std::vector<std::uint32_t> labels;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> types;
  std::vector<std::uint8_t> mask;
  BatchView view;
};

double Worst(std::span<const float> a, std::span<const float> b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

void CheckGoldenTensor(const Model& model, std::span<const float> gradient, const std::string& name,
                       const Golden& array) {
  for (const ParameterView& view : model.layout().Views()) {
    if (view.name == name) {
      CheckGolden(gradient.subspan(view.offset, view.size), array);
      return;
    }
  }
  FAIL("no such tensor: ", name);
}

TEST_CASE("Model: a convolutional network's loss and gradients agree with PyTorch") {
  const Golden& c = GoldenCase("cnn_ce");
  const ConvNetSpec spec = {.channels = 1,
                            .height = 6,
                            .width = 6,
                            .blocks = {{.filters = 2, .kernel = 3, .padding = 1, .pool_window = 2}},
                            .hidden = {},
                            .num_outputs = 3};
  const auto device = MakeCpuDevice(2);
  Model model(spec, *device);
  std::vector<float> parameters;
  for (const char* name : {"K", "b", "W", "c"}) {
    const auto values = GoldenValues(c.at("inputs").at(name));
    parameters.insert(parameters.end(), values.begin(), values.end());
  }
  const Tensor x = GoldenTensor(c.at("inputs").at("x"), {2, 36});
  const auto labels = c.at("inputs").at("target").at("data").get<std::vector<std::uint32_t>>();
  std::vector<float> gradient(parameters.size());

  const double loss = model.LossAndGradient(parameters, {.inputs = x.AsMatrix(), .labels = labels},
                                            {.divisor = 2}, gradient);

  CHECK(loss / 2 == doctest::Approx(c.at("output").at("data").at(0).get<double>()).epsilon(2e-5));
  CheckGoldenTensor(model, gradient, "conv0.weight", c.at("grads").at("K"));
  CheckGoldenTensor(model, gradient, "conv0.bias", c.at("grads").at("b"));
  CheckGoldenTensor(model, gradient, "dense0.weight", c.at("grads").at("W"));
  CheckGoldenTensor(model, gradient, "dense0.bias", c.at("grads").at("c"));
}

TEST_CASE("Model: squared error agrees with PyTorch, and its gradient reaches the weights") {
  const Golden& c = GoldenCase("mse_mean");
  const Tensor a = GoldenTensor(c.at("inputs").at("a"), {4, 1});
  const Tensor b = GoldenTensor(c.at("inputs").at("b"), {4, 1});
  const NetworkSpec spec = {
      .num_inputs = 1, .hidden = {}, .num_outputs = 1, .loss = LossKind::kSquaredError};
  const auto device = MakeCpuDevice(1);
  Model model(spec, *device);
  const std::vector<float> identity = {1, 0};
  std::vector<float> gradient(2);

  const double loss = model.LossAndGradient(
      identity, {.inputs = a.AsMatrix(), .targets = b.AsMatrix()}, {.divisor = 4}, gradient);

  CHECK(loss / 4 == doctest::Approx(c.at("output").at("data").at(0).get<double>()).epsilon(2e-5));
  double slope = 0;
  const auto da = GoldenValues(c.at("grads").at("a"));
  for (std::size_t i = 0; i < 4; ++i) {
    slope += static_cast<double>(da[i]) * static_cast<double>(a.Values()[i]);
  }
  CHECK(static_cast<double>(gradient[0]) == doctest::Approx(slope).epsilon(1e-5));
}

TEST_CASE(
    "Model: gradients of a convolutional network and of an encoder are those of differences") {
  EncoderSpec pooled = kSmallEncoder;
  pooled.pooling = Pooling::kFirst;
  pooled.activation = Activation::kGeluTanh;
  EncoderSpec adapted = kSmallEncoder;
  adapted.lora = {.rank = 2, .alpha = 4};
  ConvNetSpec smooth = kSmallImages;  // differences across the kinks of a maximum say nothing
  smooth.blocks[0].pool_window = 0;
  smooth.blocks[0].stride = 2;
  const struct {
    const char* name;
    ModelSpec spec;
  } cases[] = {{"images", smooth},
               {"encoder", kSmallEncoder},
               {"encoder with a pooler", pooled},
               {"encoder with adapters", adapted}};
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto device = MakeCpuDevice(2);
    Model model(c.spec, *device);
    std::vector<float> parameters = InitialParameters(c.spec, 5);
    const auto noise = TestNumbers(6, parameters.size(), 0.3);
    std::transform(parameters.begin(), parameters.end(), noise.begin(), parameters.begin(),
                   std::plus<>());
    const Examples examples(c.spec, 6);
    std::vector<float> gradient(parameters.size());
    model.LossAndGradient(parameters, examples.view, {.divisor = 1}, gradient);

    std::size_t compared = 0;
    for (const ParameterRange& range : model.TrainedRanges()) {
      // Every 7th number: some of each tensor.
      for (std::size_t i = range.offset; i < range.offset + range.size; i += 7) {
        CAPTURE(i);
        const float kept = parameters[i];
        parameters[i] = kept + 2e-3F;
        const double above = model.Loss(parameters, examples.view);
        parameters[i] = kept - 2e-3F;
        const double below = model.Loss(parameters, examples.view);
        parameters[i] = kept;
        CHECK(std::fabs(static_cast<double>(gradient[i]) - (above - below) / 4e-3) < 6e-3);
        ++compared;
      }
    }
    CHECK(compared >= 25);
  }
}

TEST_CASE("Strategy: every kind of model trains alike on one device and on replicas") {
  ConvNetSpec dropping = kSmallImages;
  dropping.dropout = 0.2F;
  EncoderSpec encoder = kSmallEncoder;
  encoder.dropout = 0.1F;
  for (const ModelSpec& spec : {ModelSpec(dropping), ModelSpec(encoder)}) {
    const Examples examples(spec, 23);
    TrainingSpec training = {
        .model = spec,
        .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.05, .momentum = 0.9},
        .l2 = 0.001,
        .clip_norm = 1,
        .schedule = {.warmup_steps = 3},
        .seed = 9};
    const auto initial = InitialParameters(spec, 1);
    const auto make = [&](const StrategySpec& strategy, std::size_t micro_batch) {
      training.micro_batch = micro_batch;
      return MakeStrategy(strategy, training, initial).value();
    };
    const auto one = make({.threads = 1}, 0);
    const auto threads = make({.threads = 3}, 0);
    const auto micro = make({.threads = 1}, 5);
    const auto mirrored = make({.kind = StrategyKind::kMirrored, .replicas = 3}, 4);
    const auto many = make({.kind = StrategyKind::kMirrored, .replicas = 25}, 0);

    double first = 0;
    double last = 0;
    for (int step = 0; step < 8; ++step) {
      last = one->Step(examples.view).value();
      first = step == 0 ? last : first;
      for (Strategy* other : {threads.get(), micro.get(), mirrored.get(), many.get()}) {
        CHECK(other->Step(examples.view).value() == doctest::Approx(last).epsilon(1e-4));
      }
    }

    CHECK(last < first);
    CHECK(SameBits(one->Parameters(), threads->Parameters()));
    CHECK(SameBits(mirrored->ReplicaParameters(0), mirrored->ReplicaParameters(2)));
    CHECK(Worst(one->Parameters(), micro->Parameters()) < 2e-5);
    CHECK(Worst(one->Parameters(), mirrored->Parameters()) < 2e-5);
    CHECK(Worst(one->Parameters(), many->Parameters()) < 2e-5);
    CHECK(Worst(one->Parameters(), initial) > 1e-3);  // control: steps do something
  }
}

TEST_CASE("Strategy: batch norm's statistics stay alike on all replicas") {
  ConvNetSpec spec = kSmallImages;
  spec.blocks[0].norm = ImageNorm::kBatch;
  const Examples examples(spec, 10);
  const auto mirrored =
      MakeStrategy(
          {.kind = StrategyKind::kMirrored, .replicas = 3},
          {.model = spec, .optimizer = {.kind = OptimizerKind::kAdam, .learning_rate = 0.01}},
          InitialParameters(spec, 1))
          .value();

  for (int step = 0; step < 5; ++step) {
    REQUIRE(mirrored->Step(examples.view).ok());
  }

  CHECK(SameBits(mirrored->ReplicaParameters(0), mirrored->ReplicaParameters(1)));
  CHECK(SameBits(mirrored->ReplicaParameters(0), mirrored->ReplicaParameters(2)));
  const ParameterLayout layout = LayoutOf(spec);
  for (const ParameterView& view : layout.Views()) {
    if (view.role == ParameterRole::kStatistic) {
      const auto values = mirrored->Parameters().subspan(view.offset, view.size);
      const float untouched = view.initial_value;
      CHECK(std::none_of(values.begin(), values.end(),
                         [untouched](float v) { return v == untouched; }));
    }
  }
}

TEST_CASE("Strategy: accumulated micro-batches weigh by their size, as the golden case") {
  std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/training_mechanics.json");
  const Golden golden = Golden::parse(file).at("gradient_accumulation");
  const Tensor x = GoldenTensor(golden.at("x"), {6, 3});
  const Tensor y = GoldenTensor(golden.at("y"), {6, 1});
  const NetworkSpec spec = {
      .num_inputs = 3, .hidden = {}, .num_outputs = 1, .loss = LossKind::kSquaredError};
  std::vector<float> initial = golden.at("w").get<std::vector<float>>();
  initial.push_back(0);
  for (const std::size_t micro_batch : {0U, 4U, 5U}) {
    CAPTURE(micro_batch);
    const std::vector<std::string> frozen = {"bias"};
    const auto strategy =
        MakeStrategy({},
                     {.model = spec,
                      .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1},
                      .micro_batch = micro_batch,
                      .frozen = frozen},
                     initial)
            .value();

    REQUIRE(strategy->Step({.inputs = x.AsMatrix(), .targets = y.AsMatrix()}).ok());

    // Their loss is half of ours: 0.5 * mean((xw - y)^2).
    const auto want = golden.at("full_batch_grad").get<std::vector<double>>();
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(static_cast<double>(initial[i] - strategy->Parameters()[i]) / 2 ==
            doctest::Approx(want[i]).epsilon(1e-5));
    }
    CHECK(strategy->Parameters()[3] == 0.0F);
  }
}

TEST_CASE("Strategy: frozen tensors keep their bits, and patterns that say nothing are refused") {
  const Examples examples(kSmallEncoder, 4);
  const auto initial = InitialParameters(kSmallEncoder, 1);
  TrainingSpec training = {
      .model = kSmallEncoder,
      .optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 0.01, .weight_decay = 0.1},
      .l2 = 0.01,
      .frozen = {"embeddings.*", "encoder.layer.0.*"}};
  const auto strategy = MakeStrategy({}, training, initial).value();

  REQUIRE(strategy->Step(examples.view).ok());

  const ParameterLayout layout = LayoutOf(kSmallEncoder);
  for (const ParameterView& view : layout.Views()) {
    CAPTURE(view.name);
    const bool frozen =
        view.name.starts_with("embeddings.") || view.name.starts_with("encoder.layer.0.");
    // The key's bias has no gradient but for rounding: softmax does not see it.
    if (!view.name.ends_with("key.bias")) {
      CHECK(SameBits(std::span(initial).subspan(view.offset, view.size),
                     strategy->Parameters().subspan(view.offset, view.size)) == frozen);
    }
  }
  training.frozen = {"encoder.layer.7.*"};
  CHECK(MakeStrategy({}, training, initial).status().code() == StatusCode::kInvalidArgument);
  training.frozen = {"*"};
  CHECK(MakeStrategy({}, training, initial).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Model: adapters leave the encoder alone and start as the model without them") {
  EncoderSpec adapted = kSmallEncoder;
  adapted.lora = {.rank = 2, .alpha = 4};
  const auto device = MakeCpuDevice(1);
  Model plain(kSmallEncoder, *device);
  Model with(adapted, *device);
  const auto parameters = InitialParameters(adapted, 3);
  const auto tensors = ToTensors(adapted, parameters);
  const auto without = FromTensors(kSmallEncoder, tensors);
  REQUIRE(without.ok());
  const Examples examples(kSmallEncoder, 5);

  CHECK(with.Loss(parameters, examples.view) ==
        doctest::Approx(plain.Loss(*without, examples.view)).epsilon(1e-6));
  std::size_t trained = 0;
  for (const ParameterRange& range : with.TrainedRanges()) {
    trained += range.size;
  }
  // B of query and value of two layers, and the head.
  CHECK(trained == 2 * 2 * 16 * 2 + 16 * 3 + 3);
}

TEST_CASE("CheckBatch: batches that do not fit their model are refused") {
  Examples examples(kSmallEncoder, 4);
  const ModelSpec spec = kSmallEncoder;
  CHECK(CheckBatch(spec, examples.view).ok());
  const auto refused = [&spec](const BatchView& view) {
    return CheckBatch(spec, view).code() == StatusCode::kInvalidArgument;
  };
  BatchView no_tokens = examples.view;
  no_tokens.tokens = {};
  CHECK(refused(no_tokens));
  BatchView short_mask = examples.view;
  short_mask.tokens.mask = short_mask.tokens.mask.first(3);
  CHECK(refused(short_mask));
  BatchView fewer_labels = examples.view;
  fewer_labels.labels = fewer_labels.labels.first(3);
  CHECK(refused(fewer_labels));
  examples.types[2] = 2;
  CHECK(refused(examples.view));
  examples.types[2] = 0;
  examples.ids[5] = 20;
  CHECK(refused(examples.view));
  const Examples images(kSmallImages, 2);
  CHECK(refused(images.view));
  CHECK(CheckBatch(kSmallImages, images.view).ok());
}

TEST_CASE("CheckSpec: convolutional networks and encoders without meaning are refused") {
  const auto code = [](const ModelSpec& spec) { return CheckSpec(spec).code(); };
  CHECK(CheckSpec(kSmallImages).ok());
  CHECK(CheckSpec(kSmallEncoder).ok());
  CHECK(CheckSpec(MiniLmSpec()).ok());
  ConvNetSpec images = kSmallImages;
  images.blocks[0].groups = 3;
  CHECK(code(images) == StatusCode::kInvalidArgument);
  images = kSmallImages;
  images.blocks[1].kernel = 5;  // the image is 4 by 4 after the first pool
  CHECK(code(images) == StatusCode::kInvalidArgument);
  images = kSmallImages;
  images.blocks[0].filters = std::size_t{1} << 40U;
  CHECK(code(images) == StatusCode::kInvalidArgument);
  images = kSmallImages;
  images.dropout = 1;
  CHECK(code(images) == StatusCode::kInvalidArgument);
  EncoderSpec encoder = kSmallEncoder;
  encoder.heads = 3;
  CHECK(code(encoder) == StatusCode::kInvalidArgument);
  encoder = kSmallEncoder;
  encoder.vocabulary = std::size_t{1} << 60U;
  CHECK(code(encoder) == StatusCode::kInvalidArgument);
  encoder = kSmallEncoder;
  encoder.activation = Activation::kRelu;
  CHECK(code(encoder) == StatusCode::kInvalidArgument);
  encoder = kSmallEncoder;
  encoder.lora = {.rank = 2, .alpha = 0};
  CHECK(code(encoder) == StatusCode::kInvalidArgument);
}

TEST_CASE("Model: the products of a step are counted, less those that freezing saves") {
  const auto device = MakeCpuDevice(1);
  Model mlp(
      NetworkSpec{
          .num_inputs = 10, .hidden = {20}, .activation = Activation::kRelu, .num_outputs = 3},
      *device);
  CHECK(mlp.StepFlops(1) == 2 * (2 * 10 * 20 + 3 * 20 * 3));
  Model encoder(kSmallEncoder, *device);
  const double block = 7 * (4 * 16 * 16 + 2 * 16 * 24);
  const double attention = 12 * 7 * 7 * 16;
  CHECK(encoder.StepFlops(7) == 2 * (6 * block + attention) + 6 * 16 * 3);
  const std::vector<std::string> all_but_head = {"embeddings.*", "encoder.*"};
  encoder.Freeze(all_but_head);
  CHECK(encoder.StepFlops(7) == 2 * (2 * block + attention / 3) + 4 * 16 * 3);
}

// Follows a way back, keeping what it is told to be final.
struct Follower {
  explicit Follower(std::span<const float> the_gradient) : gradient(the_gradient) {}

  FinalFrom listener = [this](std::size_t entry) {
    entries.push_back(entry);
    copies.emplace_back(gradient.begin() + static_cast<std::ptrdiff_t>(entry), gradient.end());
  };

  void Check() const {
    REQUIRE(!entries.empty());
    CHECK(std::is_sorted(entries.rbegin(), entries.rend()));
    CHECK(entries.back() == 0);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      CAPTURE(entries[i]);
      CHECK(SameBits(copies[i], gradient.subspan(entries[i])));
    }
  }

  std::span<const float> gradient;
  std::vector<std::size_t> entries;
  std::vector<std::vector<float>> copies;
};

ConvNetSpec ImagesWith(ImageNorm norm, Activation activation) {
  ConvNetSpec spec = kSmallImages;
  spec.blocks[0].norm = norm;
  spec.activation = activation;
  spec.dropout = 0.2F;
  return spec;
}

EncoderSpec EncoderWith(Pooling pooling, LoraSpec lora) {
  EncoderSpec spec = kSmallEncoder;
  spec.pooling = pooling;
  spec.lora = lora;
  spec.dropout = 0.1F;
  return spec;
}

TEST_CASE("Model: what a way back calls final is so, to the bit, for every kind of layer") {
  const struct {
    const char* name;
    ModelSpec spec;
    std::size_t told_early;  // at least so often before the end
    std::vector<std::string> frozen = {};
  } cases[] = {
      {"regression", NetworkSpec{.num_inputs = 9, .hidden = {}, .num_outputs = 1}, 0},
      {"perceptron",
       NetworkSpec{
           .num_inputs = 9, .hidden = {8, 7}, .activation = Activation::kGelu, .num_outputs = 3},
       4},
      {"no norm, pool", ImagesWith(ImageNorm::kNone, Activation::kRelu), 4},
      {"group norm", ImagesWith(ImageNorm::kGroup, Activation::kGelu), 5},
      {"batch norm", ImagesWith(ImageNorm::kBatch, Activation::kTanh), 5},
      {"frozen batch norm", ImagesWith(ImageNorm::kFrozenBatch, Activation::kRelu), 5},
      {"frozen first block", ImagesWith(ImageNorm::kGroup, Activation::kRelu), 4, {"*0.*"}},
      {"encoder", EncoderWith(Pooling::kMean, {}), 10},
      {"encoder with a pooler", EncoderWith(Pooling::kFirst, {}), 11},
      {"frozen embeddings", EncoderWith(Pooling::kMean, {}), 10, {"embeddings.*"}},
      {"adapters", EncoderWith(Pooling::kMean, {.rank = 2, .alpha = 4}), 8},
      {"adapters, both", EncoderWith(Pooling::kMean, {.rank = 2, .alpha = 4, .trains_a = true}), 8},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto device = MakeCpuDevice(2);
    Model model(c.spec, *device);
    model.Freeze(c.frozen);
    const std::vector<float> parameters = InitialParameters(c.spec, 5);
    const Examples examples(c.spec, 6);
    std::vector<float> want(parameters.size());
    const double loss =
        model.LossAndGradient(parameters, examples.view, {.divisor = 7, .dropout_key = 3}, want);
    // Not the wanted values, nor 0: what is called final must have been written in this pass.
    std::vector<float> gradient(parameters.size());
    for (const ParameterRange& range : model.TrainedRanges()) {
      std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(range.offset), range.size, 1e30F);
    }
    Follower follower(gradient);

    const double told = model.LossAndGradient(
        parameters, examples.view,
        {.divisor = 7, .dropout_key = 3, .final_from = &follower.listener}, gradient);

    CHECK(told == loss);
    CHECK(SameBits(gradient, want));
    follower.Check();
    CHECK(std::count_if(follower.entries.begin(), follower.entries.end(), [](std::size_t entry) {
            return entry > 0;
          }) >= static_cast<std::ptrdiff_t>(c.told_early));

    // An empty slice has no way back; its gradient is final at once.
    Follower of_nothing(gradient);
    model.LossAndGradient(parameters, examples.view.Rows(0, 0),
                          {.divisor = 7, .final_from = &of_nothing.listener}, gradient);
    CHECK(of_nothing.entries == std::vector<std::size_t>{0});
    of_nothing.Check();
  }
}

TEST_CASE("Layer: attention over projections of several layers tells the last declared first") {
  const auto projection = [](const std::string& name) {
    Layers layers;
    layers.push_back(MakeDense({.name = name + ".a", .inputs = 8, .outputs = 5}));
    layers.push_back(MakeDense({.name = name + ".b", .inputs = 5, .outputs = 8}));
    return MakeSequence(std::move(layers));
  };
  LayerUnderTest test(MakeAttention({.query = projection("query"),
                                     .key = projection("key"),
                                     .value = projection("value"),
                                     .heads = 2,
                                     .width = 4}));
  test.Randomise(4);
  const std::vector<std::uint32_t> ids(6);
  test.pass = {.training = true,
               .num_examples = 2,
               .tokens = {.ids = ids, .types = {}, .mask = {}, .length = 3}};
  Tensor x({6, 8});
  const std::vector<float> numbers = TestNumbers(7, 2 * x.NumElements(), 1);
  std::copy_n(numbers.begin(), x.NumElements(), x.Values().begin());
  Tensor dy({6, 8});
  std::copy_n(numbers.begin() + 48, dy.NumElements(), dy.Values().begin());
  Follower follower(test.gradient);
  test.pass.final_from = &follower.listener;

  test.Backward(x, dy);

  CHECK(follower.entries.size() == 6);
  follower.Check();
}

}  // namespace
}  // namespace domicile::models
