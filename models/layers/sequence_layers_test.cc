// Dense layers, activations, dropout, embeddings, layer norm, attention, and how they are put
// together.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "models/layers/activation.h"
#include "models/layers/attention.h"
#include "models/layers/dense.h"
#include "models/layers/dropout.h"
#include "models/layers/embedding.h"
#include "models/layers/group_norm.h"
#include "models/layers/lora.h"
#include "models/layers/sequence.h"
#include "models/layers/testing.h"
#include "models/layers/token_pool.h"

namespace domicile::models {
namespace {

Tensor Random(std::uint64_t seed, std::size_t rows, std::size_t columns) {
  Tensor tensor({rows, columns});
  const std::vector<float> values = TestNumbers(seed, rows * columns, 1);
  std::copy(values.begin(), values.end(), tensor.Values().begin());
  return tensor;
}

void Set(LayerUnderTest& test, const std::string& name, std::span<const float> values) {
  REQUIRE(values.size() == test.Values(name).size());
  std::copy(values.begin(), values.end(), test.Values(name).begin());
}

// Sequences that are only a length and a mask, for layers that do not read ids.
struct Tokens {
  Tokens(std::size_t sequences, std::size_t length) : ids(sequences * length, 0) {
    view = {.ids = ids, .types = {}, .mask = {}, .length = length};
  }
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> mask;
  TokenView view;
};

TEST_CASE("Dense: output and gradients agree with PyTorch") {
  const Golden& c = GoldenCase("linear");
  LayerUnderTest test(MakeDense({.name = "d", .inputs = 4, .outputs = 5}));
  Set(test, "d.weight", GoldenValues(c.at("inputs").at("W")));
  Set(test, "d.bias", GoldenValues(c.at("inputs").at("b")));
  const Tensor x = GoldenTensor(c.at("inputs").at("x"), {3, 4});

  CheckGolden(test.Forward(x).Values(), c.at("output"));
  const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {3, 5}));

  CheckGolden(dx.Values(), c.at("grads").at("x"));
  CheckGolden(test.GradientOf("d.weight"), c.at("grads").at("W"));
  CheckGolden(test.GradientOf("d.bias"), c.at("grads").at("b"));
}

TEST_CASE("Activation: outputs and gradients agree with PyTorch") {
  const struct {
    const char* name;
    Activation activation;
  } kinds[] = {{"tanh", Activation::kTanh},
               {"relu", Activation::kRelu},
               {"sigmoid", Activation::kSigmoid},
               {"gelu_erf", Activation::kGelu},
               {"gelu_tanh", Activation::kGeluTanh}};
  for (const auto& kind : kinds) {
    CAPTURE(kind.name);
    const Golden& c = GoldenCase(kind.name);
    const std::size_t n = c.at("inputs").at("x").at("data").size();
    LayerUnderTest test(MakeActivation(kind.activation));
    const Tensor x = GoldenTensor(c.at("inputs").at("x"), {1, n});

    CheckGolden(test.Forward(x).Values(), c.at("output"));
    CheckGolden(test.Backward(x, GoldenTensor(c.at("cotangent"), {1, n})).Values(),
                c.at("grads").at("x"));
  }
}

TEST_CASE("Activation: the GELUs are their definitions from far below to far above zero") {
  LayerUnderTest exact(MakeActivation(Activation::kGelu));
  LayerUnderTest approximate(MakeActivation(Activation::kGeluTanh));
  Tensor x({1, 4001});
  for (std::size_t i = 0; i < 4001; ++i) {
    x.Values()[i] = static_cast<float>(static_cast<double>(i) * 0.01 - 20);
  }

  const Tensor by_erf = exact.Forward(x);
  const Tensor by_tanh = approximate.Forward(x);

  for (std::size_t i = 0; i < 4001; ++i) {
    CAPTURE(i);
    const double v = static_cast<double>(x.Values()[i]);
    CHECK(std::fabs(static_cast<double>(by_erf.Values()[i]) -
                    0.5 * v * (1 + std::erf(v / std::sqrt(2.0)))) <
          1e-6 * std::max(1.0, std::fabs(v)));
    CHECK(std::fabs(static_cast<double>(by_tanh.Values()[i]) -
                    0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))) <
          1e-6 * std::max(1.0, std::fabs(v)));
  }
}

TEST_CASE("LayerNorm: output and gradients agree with PyTorch, also for a constant row") {
  for (const char* name : {"layernorm", "layernorm_constant_row"}) {
    CAPTURE(name);
    const Golden& c = GoldenCase(name);
    const std::size_t rows = c.at("inputs").at("x").at("shape").at(0).get<std::size_t>();
    LayerUnderTest test(MakeLayerNorm("norm", 6, 1e-5F));
    Set(test, "norm.weight", GoldenValues(c.at("inputs").at("gamma")));
    Set(test, "norm.bias", GoldenValues(c.at("inputs").at("beta")));
    const Tensor x = GoldenTensor(c.at("inputs").at("x"), {rows, 6});

    CheckGolden(test.Forward(x).Values(), c.at("output"));
    const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {rows, 6}));

    if (rows > 1) {
      CheckGolden(dx.Values(), c.at("grads").at("x"));
      CheckGolden(test.GradientOf("norm.weight"), c.at("grads").at("gamma"));
    }
    CheckGolden(test.GradientOf("norm.bias"), c.at("grads").at("beta"));
  }
}

TEST_CASE("LayerNorm: gradients are those of differences, also when rows are cut into pieces") {
  LayerUnderTest test(MakeLayerNorm("norm", 20, 1e-5F));
  test.Randomise(1);
  test.CheckGradients(Random(2, 11, 20), 3);
}

TEST_CASE("Embedding: rows are gathered, and gradients add up for repeated tokens") {
  const Golden& c = GoldenCase("embedding");
  LayerUnderTest test(
      MakeEmbedding({.prefix = "e", .vocabulary = 5, .positions = 4, .types = 2, .width = 3}));
  Set(test, "e.word_embeddings.weight", GoldenValues(c.at("inputs").at("E")));
  const auto ids = c.at("inputs").at("idx").at("data").get<std::vector<std::uint32_t>>();
  test.pass.tokens = {.ids = ids, .types = {}, .mask = {}, .length = ids.size()};

  CheckGolden(test.Forward({}).Values(), c.at("output"));  // places and types are still zero
  test.Backward({}, GoldenTensor(c.at("cotangent"), {ids.size(), 3}));

  CheckGolden(test.GradientOf("e.word_embeddings.weight"), c.at("grads").at("E"));
}

TEST_CASE("Embedding: gradients of tokens, places and types are those of differences") {
  LayerUnderTest test(
      MakeEmbedding({.prefix = "e", .vocabulary = 6, .positions = 5, .types = 2, .width = 3}));
  test.Randomise(1);
  const std::vector<std::uint32_t> ids = {0, 5, 5, 2, 2, 2, 1, 0};
  const std::vector<std::uint32_t> types = {0, 0, 1, 1, 1, 0, 0, 1};
  test.pass.tokens = {.ids = ids, .types = types, .mask = {}, .length = 4};

  test.CheckGradients({}, 2, false);
}

TEST_CASE("Dropout: keeps its share, grows the rest, and is nothing in evaluation") {
  LayerUnderTest test(MakeDropout(3, 0.25F));
  Tensor x({200, 50});
  std::fill(x.Values().begin(), x.Values().end(), 2.0F);
  test.pass = {.training = true, .dropout_key = 77, .num_examples = 200};

  const Tensor y = test.Forward(x);

  const auto dropped = std::count(y.Values().begin(), y.Values().end(), 0.0F);
  CHECK(dropped > 2300);
  CHECK(dropped < 2700);
  CHECK(std::all_of(y.Values().begin(), y.Values().end(),
                    [](float v) { return v == 0.0F || std::fabs(v - 2 / 0.75F) < 1e-5F; }));
  const Tensor dx = test.Backward(x, x);
  CHECK(std::equal(dx.Values().begin(), dx.Values().end(), y.Values().begin()));
  test.pass.dropout_key = 78;
  CHECK_FALSE(std::equal(y.Values().begin(), y.Values().end(), test.Forward(x).Values().begin()));
  test.pass.training = false;
  const Tensor same = test.Forward(x);
  CHECK(std::equal(same.Values().begin(), same.Values().end(), x.Values().begin()));
}

TEST_CASE("Dropout: slices of a batch drop what the whole batch does") {
  const Tensor x = Random(1, 10, 40);
  LayerUnderTest test(MakeDropout(0, 0.5F));
  test.pass = {.training = true, .dropout_key = 5, .num_examples = 10};
  const Tensor whole = test.Forward(x);
  Tensor part({4, 40});
  std::copy_n(x.Values().begin() + 6 * 40, 4 * 40, part.Values().begin());

  test.pass.first_example = 6;
  test.pass.num_examples = 4;
  const Tensor slice = test.Forward(part);

  CHECK(std::equal(slice.Values().begin(), slice.Values().end(), whole.Values().begin() + 240));
}

// A layer that copies its columns [first, first + count): stands for a projection.
class Columns final : public Layer {
 public:
  Columns(std::size_t first, std::size_t count) : first_(first), count_(count) {}
  ConstMatrix Forward(Device& device, const Pass& /*pass*/, ConstMatrix x) override {
    y_.ResizeMatrix(x.rows, count_, device.memory());
    width_ = x.columns;
    for (std::size_t row = 0; row < x.rows; ++row) {
      Copy(device.memory(), std::span(x.data + row * x.columns + first_, count_),
           y_.Values().subspan(row * count_, count_));
    }
    return y_.AsMatrix();
  }
  Matrix Backward(Device& device, const Pass& /*pass*/, Matrix dy, bool /*wants_dx*/,
                  std::span<float> /*gradient*/) override {
    dx_ = Tensor({dy.rows, width_}, device.memory());
    for (std::size_t row = 0; row < dy.rows; ++row) {
      Copy(device.memory(), std::span<const float>(dy.data + row * count_, count_),
           dx_.Values().subspan(row * width_ + first_, count_));
    }
    return dx_.AsMatrix();
  }

 private:
  std::size_t first_;
  std::size_t count_;
  std::size_t width_ = 0;
  Tensor y_;
  Tensor dx_;
};

// [heads, tokens, width] of the vectors as our [tokens, heads * width].
std::vector<float> TokensFirst(std::span<const float> values, std::size_t heads, std::size_t tokens,
                               std::size_t width) {
  std::vector<float> out;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t h = 0; h < heads; ++h) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>((h * tokens + t) * width);
      out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
  }
  return out;
}

Golden AsGolden(std::span<const float> values) {
  return {{"data", std::vector<double>(values.begin(), values.end())}};
}

TEST_CASE("Attention: plain, causal and masked, output and gradients agree with PyTorch") {
  for (const std::string name : {"sdpa", "sdpa_causal", "sdpa_key_padding"}) {
    CAPTURE(name);
    const Golden& c = GoldenCase(name);
    LayerUnderTest test(MakeAttention({.query = std::make_unique<Columns>(0, 8),
                                       .key = std::make_unique<Columns>(8, 8),
                                       .value = std::make_unique<Columns>(16, 8),
                                       .heads = 2,
                                       .width = 4,
                                       .causal = name == "sdpa_causal"}));
    Tokens tokens(1, 3);
    if (name == "sdpa_key_padding") {
      tokens.mask = {1, 1, 0};
      tokens.view.mask = tokens.mask;
    }
    test.pass.tokens = tokens.view;
    Tensor x({3, 24});
    const char* const operands[] = {"q", "k", "v"};
    for (std::size_t o = 0; o < 3; ++o) {
      const std::vector<float> values =
          TokensFirst(GoldenValues(c.at("inputs").at(operands[o])), 2, 3, 4);
      for (std::size_t t = 0; t < 3; ++t) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(t * 8), 8,
                    x.Values().begin() + static_cast<std::ptrdiff_t>(t * 24 + o * 8));
      }
    }
    Tensor dy({3, 8});
    const std::vector<float> cotangent = TokensFirst(GoldenValues(c.at("cotangent")), 2, 3, 4);
    std::copy(cotangent.begin(), cotangent.end(), dy.Values().begin());

    const Tensor y = test.Forward(x);
    const Tensor dx = test.Backward(x, dy);

    CheckGolden(y.Values(), AsGolden(TokensFirst(GoldenValues(c.at("output")), 2, 3, 4)));
    for (std::size_t o = 0; o < 3; ++o) {
      CAPTURE(operands[o]);
      std::vector<float> got;
      for (std::size_t t = 0; t < 3; ++t) {
        const auto from = dx.Values().begin() + static_cast<std::ptrdiff_t>(t * 24 + o * 8);
        got.insert(got.end(), from, from + 8);
      }
      CheckGolden(got, AsGolden(TokensFirst(GoldenValues(c.at("grads").at(operands[o])), 2, 3, 4)));
    }
  }
}

TEST_CASE("Attention: gradients are those of differences, with dropout and several sequences") {
  const auto projection = [](const char* name) {
    return MakeDense({.name = name, .inputs = 6, .outputs = 6});
  };
  for (const float rate : {0.0F, 0.3F}) {
    CAPTURE(rate);
    LayerUnderTest test(MakeAttention({.query = projection("q"),
                                       .key = projection("k"),
                                       .value = projection("v"),
                                       .heads = 2,
                                       .width = 3,
                                       .dropout = rate}));
    test.Randomise(4);
    Tokens tokens(2, 4);
    tokens.mask = {1, 1, 1, 1, 1, 1, 0, 0};
    tokens.view.mask = tokens.mask;
    test.pass = {.training = true, .dropout_key = 6, .num_examples = 2, .tokens = tokens.view};
    test.CheckGradients(Random(5, 8, 6), 6);
  }
}

TEST_CASE("Attention: padding changes nothing for the tokens that count") {
  const auto make = [] {
    return MakeAttention({.query = std::make_unique<Columns>(0, 4),
                          .key = std::make_unique<Columns>(0, 4),
                          .value = std::make_unique<Columns>(0, 4),
                          .heads = 1,
                          .width = 4});
  };
  LayerUnderTest longer(make());
  LayerUnderTest shorter(make());
  Tokens five(1, 5);
  five.mask = {1, 1, 1, 0, 0};
  five.view.mask = five.mask;
  Tokens three(1, 3);
  longer.pass.tokens = five.view;
  shorter.pass.tokens = three.view;
  const Tensor x = Random(3, 5, 4);
  Tensor head({3, 4});
  std::copy_n(x.Values().begin(), 12, head.Values().begin());

  const Tensor padded = longer.Forward(x);
  const Tensor plain = shorter.Forward(head);

  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(padded.Values()[i] == doctest::Approx(plain.Values()[i]).epsilon(1e-6));
  }
}

TEST_CASE("TokenPool: mean over the mask and first token, with the gradients of differences") {
  Tokens tokens(3, 4);
  tokens.mask = {1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0};
  tokens.view.mask = tokens.mask;
  const Tensor x = Random(1, 12, 5);
  for (const TokenPoolKind kind : {TokenPoolKind::kMean, TokenPoolKind::kFirst}) {
    LayerUnderTest test(MakeTokenPool(kind));
    test.pass.tokens = tokens.view;

    const Tensor y = test.Forward(x);

    REQUIRE(y.NumElements() == 15);
    const float second =
        kind == TokenPoolKind::kMean ? (x.Values()[40] + x.Values()[45]) / 2 : x.Values()[40];
    CHECK(y.Values()[5] == doctest::Approx(x.Values()[20]));
    CHECK(y.Values()[10] == doctest::Approx(second));
    test.CheckGradients(x, 2);
  }
}

TEST_CASE("Lora: output and gradients agree with PyTorch, and A is frozen unless asked for") {
  const Golden& c = GoldenCase("lora_linear");
  for (const bool trains_a : {false, true}) {
    LayerUnderTest test(MakeLora({.name = "d", .inputs = 4, .outputs = 5},
                                 {.rank = 2, .alpha = 16, .trains_a = trains_a}));
    Set(test, "d.weight", GoldenValues(c.at("inputs").at("W0")));
    Set(test, "d.lora_A.weight", GoldenValues(c.at("inputs").at("A")));
    Set(test, "d.lora_B.weight", GoldenValues(c.at("inputs").at("B")));
    const Tensor x = GoldenTensor(c.at("inputs").at("x"), {3, 4});

    CheckGolden(test.Forward(x).Values(), c.at("output"));
    const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {3, 5}));

    CheckGolden(dx.Values(), c.at("grads").at("x"));
    CheckGolden(test.GradientOf("d.lora_B.weight"), c.at("grads").at("B"));
    const auto of_a = test.GradientOf("d.lora_A.weight");
    const auto of_base = test.GradientOf("d.weight");
    const auto is_zero = [](float v) { return v == 0.0F; };
    CHECK(std::all_of(of_base.begin(), of_base.end(), is_zero));
    if (trains_a) {
      CheckGolden(of_a, c.at("grads").at("A"));
    } else {
      CHECK(std::all_of(of_a.begin(), of_a.end(), is_zero));
    }
  }
}

TEST_CASE("Sequence: a transformer block before its norms agrees with PyTorch") {
  const Golden& c = GoldenCase("transformer_block_preln");
  const auto dense = [](const char* name, std::size_t inputs, std::size_t outputs) {
    return MakeDense({.name = name, .inputs = inputs, .outputs = outputs});
  };
  Layers attention;
  attention.push_back(MakeLayerNorm("norm1", 4, 1e-5F));
  attention.push_back(MakeAttention({.query = dense("q", 4, 4),
                                     .key = dense("k", 4, 4),
                                     .value = dense("v", 4, 4),
                                     .heads = 2,
                                     .width = 2}));
  attention.push_back(dense("o", 4, 4));
  Layers forward;
  forward.push_back(MakeLayerNorm("norm2", 4, 1e-5F));
  forward.push_back(dense("w1", 4, 8));
  forward.push_back(MakeActivation(Activation::kGelu));
  forward.push_back(dense("w2", 8, 4));
  Layers block;
  block.push_back(MakeResidual(MakeSequence(std::move(attention))));
  block.push_back(MakeResidual(MakeSequence(std::move(forward))));
  LayerUnderTest test(MakeSequence(std::move(block)));
  const Golden& in = c.at("inputs");
  const std::vector<float> qkv = GoldenValues(in.at("Wqkv"));
  const std::vector<float> qkv_bias = GoldenValues(in.at("bqkv"));
  const char* const projections[] = {"q", "k", "v"};
  for (std::size_t i = 0; i < 3; ++i) {
    Set(test, std::string(projections[i]) + ".weight", std::span(qkv).subspan(i * 16, 16));
    Set(test, std::string(projections[i]) + ".bias", std::span(qkv_bias).subspan(i * 4, 4));
  }
  const std::pair<const char*, const char*> names[] = {
      {"o.weight", "Wo"},      {"o.bias", "bo"},           {"norm1.weight", "gamma1"},
      {"norm1.bias", "beta1"}, {"norm2.weight", "gamma2"}, {"norm2.bias", "beta2"},
      {"w1.weight", "W1"},     {"w1.bias", "b1"},          {"w2.weight", "W2"},
      {"w2.bias", "b2"}};
  for (const auto& [ours, theirs] : names) {
    Set(test, ours, GoldenValues(in.at(theirs)));
  }
  Tokens tokens(2, 3);
  test.pass.tokens = tokens.view;
  const Tensor x = GoldenTensor(in.at("x"), {6, 4});

  CheckGolden(test.Forward(x).Values(), c.at("output"));
  const Tensor dx = test.Backward(x, GoldenTensor(c.at("cotangent"), {6, 4}));

  CheckGolden(dx.Values(), c.at("grads").at("x"));
  for (const auto& [ours, theirs] : names) {
    CAPTURE(ours);
    CheckGolden(test.GradientOf(ours), c.at("grads").at(theirs));
  }
  std::vector<float> dqkv;
  for (const char* projection : projections) {
    const auto part = test.GradientOf(std::string(projection) + ".weight");
    dqkv.insert(dqkv.end(), part.begin(), part.end());
  }
  CheckGolden(dqkv, c.at("grads").at("Wqkv"));
}

}  // namespace
}  // namespace domicile::models
