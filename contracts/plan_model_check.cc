// Whether a plan's model holds together, with its inputs and its label.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "contracts/internal/plan_check.h"
#include "contracts/internal/plan_model.h"

namespace domicile::contracts::internal {

namespace {

constexpr std::size_t kMaxHiddenLayers = 16;
constexpr std::size_t kMaxTensors = 4'096;
constexpr std::size_t kMaxDimensions = 8;
constexpr std::size_t kLongestTensorName = 120;
constexpr std::size_t kMaxBlocks = 64;
// Of one example behind a block: what a site must hold per row.
constexpr std::uint64_t kMaxActivations = std::uint64_t{1} << 26U;

bool IsTensorName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestTensorName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
         });
}

std::optional<Fault> FindTensorFault(const std::vector<TensorSpec>& tensors) {
  if (tensors.empty() || tensors.size() > kMaxTensors) {
    return At("model", "tensor", "must be 1 to 4096 tables [[model.tensor]]");
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& tensor = tensors[i];
    const auto fault = [i](std::string key, std::string message) {
      return Fault{"model.tensor", i, std::move(key), std::move(message)};
    };
    if (!IsTensorName(tensor.name)) {
      return fault("name", "must be 1 to 120 of a-z, 0-9, `_` and `.`");
    }
    // A model file holds these beside the weights.
    if (tensor.name.starts_with("normalisation.") || tensor.name == "__metadata__") {
      return fault("name", "is a name that model files use themselves; choose another");
    }
    if (!names.insert(tensor.name).second) {
      return fault("name", "is the name of another tensor");
    }
    if (tensor.shape.size() > kMaxDimensions ||
        std::find(tensor.shape.begin(), tensor.shape.end(), 0U) != tensor.shape.end()) {
      return fault("shape", "must be at most 8 sizes of at least 1");
    }
  }
  return std::nullopt;
}

// Whether the model takes the schema's inputs and can learn its label.
std::optional<Fault> FindFitFault(const Plan& plan) {
  const ModelKind kind = plan.model.kind;
  const SchemaContract& schema = plan.schema;
  if (kind == ModelKind::kEncoder && !schema.text) {
    return At("", "text", "is missing: a model of kind `encoder` reads texts");
  }
  if (kind == ModelKind::kConvNet && !schema.image) {
    return At("", "image", "is missing: a model of kind `conv_net` reads pictures");
  }
  if (schema.text && kind != ModelKind::kEncoder) {
    return At("model", "kind", "must be `encoder`, since the job reads texts");
  }
  if (kind == ModelKind::kLinear && !schema.label.number) {
    return At("label", "kind", "must be \"number\" with a model of kind `linear`");
  }
  if (kind == ModelKind::kLogistic && schema.label.number) {
    return At("label", "kind", "has no use with a model of kind `logistic`; take `linear`");
  }
  return std::nullopt;
}

std::optional<Fault> FindWidthFault(const ModelPlan& model) {
  const bool may_be_none = model.kind == ModelKind::kConvNet;
  if ((model.hidden.empty() && !may_be_none) || model.hidden.size() > kMaxHiddenLayers) {
    return At("model", "hidden",
              may_be_none ? "must be at most 16 widths" : "must be 1 to 16 widths, such as [8]");
  }
  if (model.activation == Activation::kNone) {
    return At("model", "activation", "must be one of `tanh`, `relu`, `sigmoid`");
  }
  return std::nullopt;
}

std::optional<Fault> FindBlockFault(const ConvBlockPlan& block, std::size_t i, ImageShape& image) {
  const auto fault = [i](std::string key, std::string message) {
    return Fault{"model.block", i, std::move(key), std::move(message)};
  };
  if (block.norm == NormKind::kNone) {
    return fault("norm", "must be one of `none`, `group`, `batch`, `frozen_batch`");
  }
  if (block.norm == NormKind::kGroup && (block.groups == 0 || block.filters % block.groups != 0)) {
    return fault("groups", "must divide `filters`");
  }
  if (block.padding >= block.kernel) {
    return fault("padding", "must be below `kernel`");
  }
  const std::optional<ImageShape> behind = ShapeBehind(block, image);
  if (!behind) {
    return fault("kernel", "or `pool` is larger than the image in front of it, " +
                               std::to_string(image.height) + " by " + std::to_string(image.width));
  }
  const std::uint64_t unpooled = std::uint64_t{block.pool == 0 ? 1U : block.pool} *
                                 (block.pool == 0 ? 1U : block.pool) * behind->height *
                                 behind->width * behind->channels;
  if (unpooled > kMaxActivations) {
    return fault("filters", "give more than 2^26 values of one picture; raise `stride`");
  }
  image = *behind;
  return std::nullopt;
}

std::optional<Fault> FindConvNetFault(const Plan& plan) {
  if (plan.model.blocks.empty() || plan.model.blocks.size() > kMaxBlocks) {
    return At("model", "block", "must be 1 to 64 tables [[model.block]]");
  }
  const ImageInput& input = *plan.schema.image;
  ImageShape image = {input.channels, input.height, input.width};
  for (std::size_t i = 0; i < plan.model.blocks.size(); ++i) {
    if (std::optional<Fault> fault = FindBlockFault(plan.model.blocks[i], i, image)) {
      return fault;
    }
  }
  return std::nullopt;
}

std::optional<Fault> FindEncoderFault(const Plan& plan) {
  const EncoderPlan& encoder = plan.model.encoder;
  if (encoder.width == 0 || encoder.heads == 0 || encoder.width % encoder.heads != 0) {
    return At("model", "heads", "must divide `width`");
  }
  if (encoder.pooling == PoolingKind::kNone) {
    return At("model", "pooling", "must be one of `mean`, `first`");
  }
  if (encoder.lora_rank > encoder.width) {
    return At("model", "lora_rank", "must be at most `width`");
  }
  if (encoder.lora_rank > 0 && !(encoder.lora_alpha > 0)) {
    return At("model", "lora_alpha", "must be above 0");
  }
  if (plan.schema.text->length > encoder.positions) {
    return At("text", "length", "must be at most `model.positions`");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> FindModelFault(const Plan& plan) {
  const ModelKind kind = plan.model.kind;
  if (kind == ModelKind::kNone) {
    return At("model", "kind", "must be a kind of model");
  }
  if (kind == ModelKind::kRaw) {
    if (plan.schema != SchemaContract{}) {
      return At("", "feature", "has no use with a raw model: its trainer reads the table itself");
    }
    if (std::optional<Fault> fault = FindTensorFault(plan.model.tensors)) {
      return fault;
    }
  } else if (std::optional<Fault> fault = FindSchemaFault(plan.schema)) {
    return fault;
  } else if (std::optional<Fault> unfit = FindFitFault(plan)) {
    return unfit;
  }
  std::optional<Fault> fault;
  if (kind == ModelKind::kMlp || kind == ModelKind::kConvNet) {
    fault = FindWidthFault(plan.model);
  }
  if (!fault && kind == ModelKind::kConvNet) {
    fault = FindConvNetFault(plan);
  }
  if (!fault && kind == ModelKind::kEncoder) {
    fault = FindEncoderFault(plan);
  }
  if (!fault && !(plan.model.dropout < 1)) {
    fault = At("model", "dropout", "must be below 1");
  }
  if (fault) {
    return fault;
  }
  // Of the whole model, not of what travels alone: a site must hold it.
  std::uint64_t parameters = 0;
  for (const ModelTensor& tensor : ModelTensors(plan)) {
    parameters =
        std::min(kMaxParameters + 1, parameters + std::min(kMaxParameters + 1, tensor.spec.Size()));
  }
  if (parameters > kMaxParameters) {
    return At("model", "kind", "gives more than 2^30 parameters; make the model smaller");
  }
  return std::nullopt;
}

}  // namespace domicile::contracts::internal
