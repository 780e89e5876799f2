#include "models/export/internal/onnx_encoder.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace domicile::models::internal {
namespace {

constexpr float kGeluCubic = 0.044715F;
const char* const kIds = "input_ids";
const char* const kMask = "attention_mask";
const char* const kTypes = "token_type_ids";

class EncoderWriter {
 public:
  EncoderWriter(const EncoderSpec& spec, OnnxGraph& graph) : spec_(spec), graph_(graph) {}

  void Write() {
    for (const char* const input : {kIds, kMask, kTypes}) {
      graph_.Input(input, OnnxType::kInt64, {"N", "length"});
    }
    kept_ = graph_.NodeOf("Cast", {kMask}, {Attribute("to", Code(OnnxType::kBool))});
    // [N, heads, queries, keys]: the mask is of keys.
    kept_keys_ = graph_.NodeOf("Unsqueeze", {kept_, graph_.Integers({1, 2})});
    Embed();
    for (std::size_t i = 0; i < spec_.layers; ++i) {
      AddBlock("encoder.layer." + std::to_string(i) + ".");
    }
    if (spec_.pooling == Pooling::kFirst) {
      First();
      Dense("pooler.dense", spec_.hidden, spec_.hidden);
      graph_.Node("Tanh");
    } else {
      Mean();
    }
    if (spec_.num_outputs > 0) {
      Dense("classifier", spec_.hidden, spec_.num_outputs);
    }
  }

 private:
  static std::int64_t Code(OnnxType type) { return static_cast<std::int64_t>(type); }
  static std::int64_t Size(std::size_t size) { return static_cast<std::int64_t>(size); }

  void Embed() {
    const std::string prefix = "embeddings.";
    const std::string shape = graph_.NodeOf("Shape", {kIds});
    const std::string length =
        graph_.Node("Slice", {graph_.Integers({1}), graph_.Integers({2}), graph_.Integers({0})});
    const std::string places =
        graph_.NodeOf("Slice", {graph_.Parameter(prefix + "position_embeddings.weight"),
                                graph_.Integers({0}), length, graph_.Integers({0})});
    const std::string types =
        graph_.NodeOf("Gather", {graph_.Parameter(prefix + "token_type_embeddings.weight"), kTypes},
                      {Attribute("axis", std::int64_t{0})});
    graph_.NodeOf("Gather", {graph_.Parameter(prefix + "word_embeddings.weight"), kIds},
                  {Attribute("axis", std::int64_t{0})});
    graph_.Node("Add", {places});
    graph_.Node("Add", {types});
    LayerNorm(prefix + "LayerNorm");
  }

  // y = x W^T + b. Other programs multiply fastest by a weight that lies [inputs, outputs].
  void Dense(const std::string& name, std::size_t inputs, std::size_t outputs) {
    const std::string weight = name + ".weight";
    const std::vector<float> adapted = Adapted(name, inputs, outputs);
    std::vector<float> turned(adapted.size());
    for (std::size_t out = 0; out < outputs; ++out) {
      for (std::size_t in = 0; in < inputs; ++in) {
        turned[in * outputs + out] = adapted[out * inputs + in];
      }
    }
    graph_.Node("MatMul", {graph_.Constant(weight, {Size(inputs), Size(outputs)}, turned)});
    graph_.Node("Add", {graph_.Parameter(name + ".bias")});
  }

  // The weight [outputs, inputs], with what its adapter adds: alpha / rank * B A.
  std::vector<float> Adapted(const std::string& name, std::size_t inputs, std::size_t outputs) {
    const std::span<const float> weight = graph_.Values(name + ".weight");
    std::vector<float> adapted(weight.begin(), weight.end());
    if (spec_.lora.rank == 0 || !IsAdapted(name)) {
      return adapted;
    }
    const std::span<const float> a = graph_.Values(name + ".lora_A.weight");
    const std::span<const float> b = graph_.Values(name + ".lora_B.weight");
    const std::size_t rank = spec_.lora.rank;
    const double scale = spec_.lora.alpha / static_cast<double>(rank);
    for (std::size_t out = 0; out < outputs; ++out) {
      for (std::size_t in = 0; in < inputs; ++in) {
        double sum = 0;
        for (std::size_t i = 0; i < rank; ++i) {
          sum += static_cast<double>(b[out * rank + i]) * static_cast<double>(a[i * inputs + in]);
        }
        float& value = adapted[out * inputs + in];
        value = static_cast<float>(static_cast<double>(value) + scale * sum);
      }
    }
    return adapted;
  }
  static bool IsAdapted(const std::string& name) {
    return name.ends_with("self.query") || name.ends_with("self.value");
  }

  // The operator set has none.
  void LayerNorm(const std::string& name) {
    const std::string x = graph_.Last();
    const std::string mean = graph_.Node("ReduceMean", {}, {Attribute("axes", Sizes{-1})});
    const std::string centred = graph_.NodeOf("Sub", {x, mean});
    graph_.Node("Mul", {centred});
    graph_.Node("ReduceMean", {}, {Attribute("axes", Sizes{-1})});
    graph_.Node("Add", {graph_.Number("epsilon", spec_.epsilon)});
    const std::string deviation = graph_.Node("Sqrt");
    graph_.NodeOf("Div", {centred, deviation});
    graph_.Node("Mul", {graph_.Parameter(name + ".weight")});
    graph_.Node("Add", {graph_.Parameter(name + ".bias")});
  }

  // A projection of `x`, cut into heads.
  std::string Heads(const std::string& x, const std::string& name, const Sizes& order) {
    graph_.NodeOf("Identity", {x});
    Dense(name, spec_.hidden, spec_.hidden);
    graph_.Node("Reshape",
                {graph_.Integers({0, 0, Size(spec_.heads), Size(spec_.hidden / spec_.heads)})});
    return graph_.Node("Transpose", {}, {Attribute("perm", order)});
  }

  void Attend(const std::string& prefix) {
    const std::string x = graph_.Last();
    const std::string query = Heads(x, prefix + "self.query", {0, 2, 1, 3});
    const std::string key = Heads(x, prefix + "self.key", {0, 2, 3, 1});
    const std::string value = Heads(x, prefix + "self.value", {0, 2, 1, 3});
    const std::size_t width = spec_.hidden / spec_.heads;
    graph_.NodeOf("MatMul", {query, key});
    const std::string scores = graph_.Node(
        "Mul", {graph_.Number("score_scale", 1 / std::sqrt(static_cast<float>(width)))});
    // Not -infinity: of a row that keeps nothing the softmax would be no number.
    graph_.NodeOf("Where", {kept_keys_, scores,
                            graph_.Number("hidden", std::numeric_limits<float>::lowest())});
    graph_.Node("Softmax", {}, {Attribute("axis", std::int64_t{-1})});
    graph_.Node("MatMul", {value});
    graph_.Node("Transpose", {}, {Attribute("perm", Sizes{0, 2, 1, 3})});
    graph_.Node("Reshape", {graph_.Integers({0, 0, Size(spec_.hidden)})});
    Dense(prefix + "output.dense", spec_.hidden, spec_.hidden);
    graph_.Node("Add", {x});
    LayerNorm(prefix + "output.LayerNorm");
  }

  void AddBlock(const std::string& prefix) {
    Attend(prefix + "attention.");
    const std::string x = graph_.Last();
    Dense(prefix + "intermediate.dense", spec_.hidden, spec_.intermediate);
    Gelu();
    Dense(prefix + "output.dense", spec_.intermediate, spec_.hidden);
    graph_.Node("Add", {x});
    LayerNorm(prefix + "output.LayerNorm");
  }

  void Gelu() {
    const std::string x = graph_.Last();
    if (spec_.activation == Activation::kGeluTanh) {
      graph_.Node("Mul", {x});
      graph_.Node("Mul", {x});
      graph_.Node("Mul", {graph_.Number("gelu_cubic", kGeluCubic)});
      graph_.Node("Add", {x});
      const float scale = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
      graph_.Node("Mul", {graph_.Number("gelu_scale", scale)});
      graph_.Node("Tanh");
    } else {
      graph_.Node("Mul", {graph_.Number("root_half", std::numbers::sqrt2_v<float> / 2)});
      graph_.Node("Erf");
    }
    graph_.Node("Add", {graph_.Number("one", 1)});
    graph_.Node("Mul", {x});
    graph_.Node("Mul", {graph_.Number("half", 0.5F)});
  }

  void First() {
    graph_.Node("Slice", {graph_.Integers({0}), graph_.Integers({1}), graph_.Integers({1})});
    graph_.Node("Squeeze", {graph_.Integers({1})});
  }

  // Of the tokens that the mask keeps; of none, zero.
  void Mean() {
    const std::string x = graph_.Last();
    const std::string axis = graph_.Integers({1});
    graph_.NodeOf("Cast", {kept_}, {Attribute("to", Code(OnnxType::kFloat))});
    const std::string weights = graph_.Node("Unsqueeze", {graph_.Integers({2})});
    graph_.Node("ReduceSum", {axis}, {Attribute("keepdims", std::int64_t{0})});
    const std::string number = graph_.Node("Max", {graph_.Number("one", 1)});
    graph_.NodeOf("Mul", {x, weights});
    const std::string sum =
        graph_.Node("ReduceSum", {axis}, {Attribute("keepdims", std::int64_t{0})});
    graph_.NodeOf("Div", {sum, number});
  }

  const EncoderSpec& spec_;
  OnnxGraph& graph_;
  std::string kept_;       // [N, length] of truth: no padding
  std::string kept_keys_;  // [N, 1, 1, length]
};

}  // namespace

void AddEncoder(const EncoderSpec& spec, OnnxGraph& graph) { EncoderWriter(spec, graph).Write(); }

}  // namespace domicile::models::internal
