#include "models/encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "models/layers/activation.h"
#include "models/layers/attention.h"
#include "models/layers/dense.h"
#include "models/layers/dropout.h"
#include "models/layers/embedding.h"
#include "models/layers/group_norm.h"
#include "models/layers/sequence.h"
#include "models/layers/token_pool.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMaxSize = std::size_t{1} << 31U;
constexpr double kInitialDeviation = 0.02;  // BERT's

// Freezes, once declared, all that an adapter replaces: every tensor declared by `inner`.
class Frozen final : public Layer {
 public:
  explicit Frozen(std::unique_ptr<Layer> inner) : inner_(std::move(inner)) {}

  void Declare(ParameterLayout& layout) override {
    const std::size_t before = layout.Views().size();
    inner_->Declare(layout);
    std::vector<std::string> names;
    for (const ParameterView& view : layout.Views().subspan(before)) {
      if (view.name.find(".lora_") == std::string::npos) {
        names.push_back(view.name);
      }
    }
    layout.Freeze(names);
    inner_->Bind(layout);
  }
  void Bind(const ParameterLayout& layout) override { inner_->Bind(layout); }
  bool IsTrained() const override { return inner_->IsTrained(); }
  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    return inner_->Forward(device, pass, x);
  }
  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    return inner_->Backward(device, pass, dy, wants_dx, gradient);
  }
  double StepFlops(bool wants_dx, std::size_t& rows) const override {
    return inner_->StepFlops(wants_dx, rows);
  }

 private:
  std::unique_ptr<Layer> inner_;
};

class Builder {
 public:
  explicit Builder(const EncoderSpec& spec) : spec_(spec) {}

  std::unique_ptr<Layer> Encoder() {
    Layers layers;
    layers.push_back(MakeEmbedding({.prefix = "embeddings",
                                    .vocabulary = spec_.vocabulary,
                                    .positions = spec_.positions,
                                    .types = spec_.types,
                                    .width = spec_.hidden,
                                    .initial_deviation = kInitialDeviation}));
    layers.push_back(MakeLayerNorm("embeddings.LayerNorm", spec_.hidden, spec_.epsilon));
    AddDropout(layers);
    for (std::size_t i = 0; i < spec_.layers; ++i) {
      AddBlock("encoder.layer." + std::to_string(i) + ".", layers);
    }
    layers.push_back(MakeTokenPool(spec_.pooling == Pooling::kMean ? TokenPoolKind::kMean
                                                                   : TokenPoolKind::kFirst));
    if (spec_.pooling == Pooling::kFirst) {
      layers.push_back(Projection("pooler.dense", spec_.hidden, spec_.hidden, Activation::kTanh));
    }
    return MakeSequence(std::move(layers));
  }

  void AddHead(Layers& layers) {
    AddDropout(layers);
    layers.push_back(Projection("classifier", spec_.hidden, spec_.num_outputs));
  }

 private:
  static std::unique_ptr<Layer> Projection(std::string name, std::size_t inputs,
                                           std::size_t outputs,
                                           Activation activation = Activation::kNone) {
    return MakeDense({.name = std::move(name),
                      .inputs = inputs,
                      .outputs = outputs,
                      .activation = activation,
                      .initial_deviation = kInitialDeviation});
  }

  // A projection with the adapter, where there is one.
  std::unique_ptr<Layer> Adapted(std::string name) const {
    if (spec_.lora.rank == 0) {
      return Projection(std::move(name), spec_.hidden, spec_.hidden);
    }
    return MakeLora({.name = std::move(name),
                     .inputs = spec_.hidden,
                     .outputs = spec_.hidden,
                     .initial_deviation = kInitialDeviation},
                    spec_.lora);
  }

  void AddDropout(Layers& layers) {
    if (spec_.dropout > 0) {
      layers.push_back(MakeDropout(num_dropouts_++, spec_.dropout));
    }
  }

  void AddBlock(const std::string& prefix, Layers& layers) {
    Layers attention;
    attention.push_back(
        MakeAttention({.query = Adapted(prefix + "attention.self.query"),
                       .key = Projection(prefix + "attention.self.key", spec_.hidden, spec_.hidden),
                       .value = Adapted(prefix + "attention.self.value"),
                       .heads = spec_.heads,
                       .width = spec_.hidden / spec_.heads,
                       .causal = false,
                       .dropout = spec_.dropout,
                       .dropout_number = num_dropouts_++}));
    attention.push_back(Projection(prefix + "attention.output.dense", spec_.hidden, spec_.hidden));
    AddDropout(attention);
    layers.push_back(MakeResidual(MakeSequence(std::move(attention))));
    layers.push_back(
        MakeLayerNorm(prefix + "attention.output.LayerNorm", spec_.hidden, spec_.epsilon));
    Layers feed_forward;
    feed_forward.push_back(
        Projection(prefix + "intermediate.dense", spec_.hidden, spec_.intermediate));
    feed_forward.push_back(MakeActivation(spec_.activation));
    feed_forward.push_back(Projection(prefix + "output.dense", spec_.intermediate, spec_.hidden));
    AddDropout(feed_forward);
    layers.push_back(MakeResidual(MakeSequence(std::move(feed_forward))));
    layers.push_back(MakeLayerNorm(prefix + "output.LayerNorm", spec_.hidden, spec_.epsilon));
  }

  const EncoderSpec& spec_;
  std::uint64_t num_dropouts_ = 0;
};

}  // namespace

EncoderSpec MiniLmSpec() {
  return {.vocabulary = 30522,
          .positions = 512,
          .types = 2,
          .hidden = 384,
          .layers = 6,
          .heads = 12,
          .intermediate = 1536};
}

Status CheckSpec(const EncoderSpec& spec) {
  const struct {
    const char* name;
    std::size_t value;
  } sizes[] = {{"vocabulary", spec.vocabulary}, {"positions", spec.positions},
               {"types", spec.types},           {"hidden", spec.hidden},
               {"heads", spec.heads},           {"intermediate", spec.intermediate}};
  for (const auto& size : sizes) {
    if (size.value == 0 || size.value > (std::size_t{1} << 24U)) {
      return Error(StatusCode::kInvalidArgument,
                   std::string("`") + size.name + "` of an encoder must be from 1 to 2^24");
    }
  }
  const auto invalid = [](const char* what) { return Error(StatusCode::kInvalidArgument, what); };
  if (spec.layers > 1000 || spec.lora.rank > spec.hidden || spec.num_outputs > 1'000'000) {
    return invalid("`layers`, `num_outputs` or the rank of an adapter is too large");
  }
  const std::size_t tables = (spec.vocabulary + spec.positions + spec.types) * spec.hidden;
  const std::size_t block = (4 * spec.hidden + 2 * spec.intermediate + 16) * spec.hidden;
  if (tables > kMaxSize || block > kMaxSize || tables + spec.layers * block > kMaxSize) {
    return invalid("an encoder may have at most 2^31 parameters");
  }
  if (spec.hidden % spec.heads != 0) {
    return invalid("`heads` of an encoder must divide `hidden`");
  }
  if (spec.activation != Activation::kGelu && spec.activation != Activation::kGeluTanh) {
    return invalid("the activation of an encoder must be a GELU");
  }
  if (!(spec.dropout >= 0) || !(spec.dropout < 1) || !(spec.epsilon > 0)) {
    return invalid("`dropout` must be from 0 to below 1, and `epsilon` above 0");
  }
  if (spec.lora.rank > 0 && !(spec.lora.alpha > 0)) {
    return invalid("`alpha` of an adapter must be above 0");
  }
  return OkStatus();
}

std::unique_ptr<Layer> MakeLayers(const EncoderSpec& spec) {
  Builder builder(spec);
  Layers layers;
  layers.push_back(builder.Encoder());
  if (spec.lora.rank > 0) {
    layers.back() = std::make_unique<Frozen>(std::move(layers.back()));
  }
  if (spec.num_outputs > 0) {
    builder.AddHead(layers);
  }
  return MakeSequence(std::move(layers));
}

Status LoadPretrained(const EncoderSpec& spec, std::span<const NamedTensor> tensors,
                      std::span<float> parameters) {
  static const std::array<std::string, 3> kMayLack = {"classifier.*", "*.lora_*", "pooler.*"};
  ParameterLayout layout;
  MakeLayers(spec)->Declare(layout);
  DOMICILE_CHECK(parameters.size() == layout.NumParameters());
  for (const ParameterView& view : layout.Views()) {
    const NamedTensor* const tensor = FindTensor(tensors, view.name);
    if (tensor == nullptr) {
      if (std::any_of(kMayLack.begin(), kMayLack.end(), [&view](const std::string& pattern) {
            return MatchesPattern(pattern, view.name);
          })) {
        continue;
      }
      return Error(StatusCode::kInvalidArgument,
                   "the pretrained model has no tensor `" + view.name + "`");
    }
    if (tensor->type != DataType::kFloat32 || tensor->shape != view.shape ||
        tensor->values.size() != view.size) {
      return Error(StatusCode::kInvalidArgument,
                   "tensor `" + view.name + "` does not have the type and shape of the encoder");
    }
    RETURN_IF_ERROR(CheckFinite({tensor, 1}));
    std::copy(tensor->values.begin(), tensor->values.end(),
              parameters.begin() + static_cast<std::ptrdiff_t>(view.offset));
  }
  return OkStatus();
}

}  // namespace domicile::models
