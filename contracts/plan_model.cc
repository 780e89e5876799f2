// The tensors of a plan's model.
#include "contracts/internal/plan_model.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace domicile::contracts {

namespace internal {

namespace {

// Collects tensors in the order in which the layers of models/ declare them.
class TensorList {
 public:
  void Add(std::string name, std::vector<std::uint64_t> shape, bool trainable = true) {
    tensors_.push_back({{std::move(name), std::move(shape)}, trainable});
  }

  // PyTorch's layout of a dense layer.
  void AddDense(const std::string& name, std::uint64_t in, std::uint64_t out,
                bool trainable = true) {
    Add(name + ".weight", {out, in}, trainable);
    Add(name + ".bias", {out}, trainable);
  }

  void AddNorm(const std::string& name, std::uint64_t size, bool trainable = true) {
    Add(name + ".weight", {size}, trainable);
    Add(name + ".bias", {size}, trainable);
  }

  std::vector<ModelTensor> Take() { return std::move(tensors_); }

 private:
  std::vector<ModelTensor> tensors_;
};

void AddRegression(const Plan& plan, TensorList& tensors) {
  const std::uint64_t inputs = plan.NumInputs();
  const std::uint64_t outputs = plan.NumOutputs();
  if (outputs == 1) {
    tensors.Add("weight", {inputs});
  } else {
    tensors.Add("weight", {inputs, outputs});
  }
  tensors.Add("bias", {outputs});
}

void AddPerceptron(const Plan& plan, TensorList& tensors) {
  std::uint64_t in = plan.NumInputs();
  const std::vector<std::uint32_t>& hidden = plan.model.hidden;
  for (std::size_t layer = 0; layer <= hidden.size(); ++layer) {
    const std::uint64_t out = layer < hidden.size() ? hidden[layer] : plan.NumOutputs();
    const std::string prefix = "layer" + std::to_string(layer);
    tensors.Add(prefix + ".weight", {in, out});
    tensors.Add(prefix + ".bias", {out});
    in = out;
  }
}

void AddConvNet(const Plan& plan, TensorList& tensors) {
  if (!plan.schema.image) {
    return;
  }
  const ImageInput& input = *plan.schema.image;
  ImageShape image = {input.channels, input.height, input.width};
  for (std::size_t i = 0; i < plan.model.blocks.size(); ++i) {
    const ConvBlockPlan& block = plan.model.blocks[i];
    const std::optional<ImageShape> behind = ShapeBehind(block, image);
    if (!behind) {
      return;
    }
    const std::string number = std::to_string(i);
    tensors.Add("conv" + number + ".weight",
                {block.filters, image.channels, block.kernel, block.kernel});
    tensors.Add("conv" + number + ".bias", {block.filters});
    if (block.norm != NormKind::kOff) {
      tensors.AddNorm("norm" + number, block.filters);
    }
    image = *behind;
  }
  std::uint64_t in = image.channels * image.height * image.width;
  const std::vector<std::uint32_t>& hidden = plan.model.hidden;
  for (std::size_t layer = 0; layer <= hidden.size(); ++layer) {
    const std::uint64_t out = layer < hidden.size() ? hidden[layer] : plan.NumOutputs();
    tensors.AddDense("dense" + std::to_string(layer), in, out);
    in = out;
  }
}

// One block of BERT. With adapters all but them is frozen, their A part included.
void AddEncoderLayer(const EncoderPlan& encoder, const std::string& prefix, TensorList& tensors) {
  const std::uint64_t width = encoder.width;
  const bool adapted = encoder.lora_rank > 0;
  for (const char* const name : {"query", "key", "value"}) {
    const std::string dense = prefix + "attention.self." + name;
    tensors.AddDense(dense, width, width, !adapted);
    if (adapted && std::string_view(name) != "key") {
      tensors.Add(dense + ".lora_A.weight", {encoder.lora_rank, width}, false);
      tensors.Add(dense + ".lora_B.weight", {width, encoder.lora_rank});
    }
  }
  tensors.AddDense(prefix + "attention.output.dense", width, width, !adapted);
  tensors.AddNorm(prefix + "attention.output.LayerNorm", width, !adapted);
  tensors.AddDense(prefix + "intermediate.dense", width, encoder.intermediate, !adapted);
  tensors.AddDense(prefix + "output.dense", encoder.intermediate, width, !adapted);
  tensors.AddNorm(prefix + "output.LayerNorm", width, !adapted);
}

void AddEncoder(const Plan& plan, TensorList& tensors) {
  const EncoderPlan& encoder = plan.model.encoder;
  const bool trained = encoder.lora_rank == 0;
  tensors.Add("embeddings.word_embeddings.weight", {encoder.vocabulary, encoder.width}, trained);
  tensors.Add("embeddings.position_embeddings.weight", {encoder.positions, encoder.width}, trained);
  tensors.Add("embeddings.token_type_embeddings.weight", {encoder.types, encoder.width}, trained);
  tensors.AddNorm("embeddings.LayerNorm", encoder.width, trained);
  for (std::uint32_t layer = 0; layer < encoder.layers; ++layer) {
    AddEncoderLayer(encoder, "encoder.layer." + std::to_string(layer) + ".", tensors);
  }
  if (encoder.pooling == PoolingKind::kFirst) {
    tensors.AddDense("pooler.dense", encoder.width, encoder.width, trained);
  }
  tensors.AddDense("classifier", encoder.width, plan.NumOutputs());
}

}  // namespace

std::vector<ModelTensor> ModelTensors(const Plan& plan) {
  TensorList tensors;
  switch (plan.model.kind) {
    case ModelKind::kNone:
      break;
    case ModelKind::kRaw:
      for (const TensorSpec& tensor : plan.model.tensors) {
        tensors.Add(tensor.name, tensor.shape);
      }
      break;
    case ModelKind::kLogistic:
    case ModelKind::kLinear:
      AddRegression(plan, tensors);
      break;
    case ModelKind::kMlp:
      AddPerceptron(plan, tensors);
      break;
    case ModelKind::kConvNet:
      AddConvNet(plan, tensors);
      break;
    case ModelKind::kEncoder:
      AddEncoder(plan, tensors);
      break;
  }
  return tensors.Take();
}

std::vector<StagePlan> StagesOf(const TrainingPlan& training) {
  std::vector<StagePlan> stages = training.stages;
  if (stages.empty() || stages.front().from_round > 1) {
    stages.insert(
        stages.begin(),
        {.from_round = 1, .frozen = training.frozen, .learning_rate = training.learning_rate});
  }
  return stages;
}

bool IsFrozen(const StagePlan& stage, std::string_view tensor) {
  return std::any_of(
      stage.frozen.begin(), stage.frozen.end(),
      [tensor](const std::string& pattern) { return MatchesPattern(pattern, tensor); });
}

std::optional<ImageShape> ShapeBehind(const ConvBlockPlan& block, const ImageShape& image) {
  const std::uint64_t padding = 2 * std::uint64_t{block.padding};
  if (block.kernel == 0 || block.stride == 0 || block.padding >= block.kernel ||
      block.kernel > image.height + padding || block.kernel > image.width + padding) {
    return std::nullopt;
  }
  ImageShape behind = {block.filters, (image.height + padding - block.kernel) / block.stride + 1,
                       (image.width + padding - block.kernel) / block.stride + 1};
  if (block.pool > 0) {
    behind.height /= block.pool;
    behind.width /= block.pool;
  }
  return behind.height == 0 || behind.width == 0 ? std::nullopt : std::optional(behind);
}

}  // namespace internal

std::vector<TensorSpec> Plan::Tensors() const {
  const std::vector<StagePlan> stages = internal::StagesOf(training);
  std::vector<TensorSpec> tensors;
  for (internal::ModelTensor& tensor : internal::ModelTensors(*this)) {
    const bool trained = std::any_of(stages.begin(), stages.end(), [&](const StagePlan& stage) {
      return !internal::IsFrozen(stage, tensor.spec.name);
    });
    if (tensor.trainable && trained) {
      tensors.push_back(std::move(tensor.spec));
    }
  }
  return tensors;
}

StagePlan Plan::StageOf(RoundNumber round) const {
  std::vector<StagePlan> stages = internal::StagesOf(training);
  StagePlan held = std::move(stages.front());
  for (std::size_t i = 1; i < stages.size() && stages[i].from_round <= round; ++i) {
    held = std::move(stages[i]);
  }
  return held;
}

}  // namespace domicile::contracts
