// The table `model` of job files and plans.
#pragma once

#include <cstdint>
#include <string_view>

#include "contracts/internal/fields.h"
#include "contracts/internal/plan_check.h"
#include "contracts/internal/plan_words.h"
#include "contracts/plan.h"

namespace domicile::contracts::internal {

inline std::uint32_t Narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }

template <typename Fields>
std::uint64_t ReadSeed(Fields& fields, std::string_view key) {
  return static_cast<std::uint64_t>(fields.TryInt(key, 0, kLargestJsonInteger).value_or(0));
}

template <typename Fields>
TensorSpec ReadTensor(Fields fields) {
  TensorSpec tensor;
  tensor.name = fields.String("name");
  const auto longest = static_cast<std::int64_t>(kMaxParameters);
  for (const std::int64_t length : fields.Ints("shape", 1, longest)) {
    tensor.shape.push_back(static_cast<std::uint64_t>(length));
  }
  return tensor;
}

template <typename Fields>
ConvBlockPlan ReadBlock(Fields fields) {
  ConvBlockPlan block;
  block.filters = Narrow(fields.Int("filters", 1, kMaxFilters));
  block.kernel = Narrow(fields.Int("kernel", 1, kMaxSide));
  block.stride = Narrow(fields.TryInt("stride", 1, kMaxSide).value_or(1));
  block.padding = Narrow(fields.TryInt("padding", 0, kMaxSide).value_or(0));
  block.norm = fields.Has("norm") ? ReadWord<NormKind>(fields, "norm", kNormWords) : NormKind::kOff;
  if (block.norm == NormKind::kGroup) {
    block.groups = Narrow(fields.Int("groups", 1, kMaxFilters));
  } else {
    RefuseKey(fields, "groups", "belong to `group`; leave them out");
  }
  block.pool = Narrow(fields.TryInt("pool", 0, kMaxSide).value_or(0));
  return block;
}

template <typename Fields>
EncoderPlan ReadEncoder(Fields& fields) {
  EncoderPlan encoder;
  encoder.vocabulary = Narrow(fields.Int("vocabulary", 1, kMaxVocabulary));
  encoder.positions = Narrow(fields.Int("positions", 2, kMaxTextLength));
  encoder.types = Narrow(fields.TryInt("types", 1, kMaxTypes).value_or(2));
  encoder.width = Narrow(fields.Int("width", 1, kMaxHiddenWidth));
  encoder.layers = Narrow(fields.Int("layers", 1, kMaxLayers));
  encoder.heads = Narrow(fields.Int("heads", 1, kMaxHiddenWidth));
  encoder.intermediate = Narrow(fields.Int("intermediate", 1, kMaxHiddenWidth));
  encoder.pooling = fields.Has("pooling") ? ReadWord<PoolingKind>(fields, "pooling", kPoolingWords)
                                          : PoolingKind::kMean;
  encoder.lora_rank = Narrow(fields.TryInt("lora_rank", 0, kMaxHiddenWidth).value_or(0));
  if (encoder.lora_rank > 0) {
    encoder.lora_alpha = fields.Double("lora_alpha", 0, kMaxLoraAlpha);
  } else {
    RefuseKey(fields, "lora_alpha", "has no use where `lora_rank` is 0");
  }
  if (fields.Has("pretrained")) {
    encoder.pretrained = ReadDigest(fields, "pretrained");
  }
  return encoder;
}

// All but blocks and tensors, which have different names in the two forms.
template <typename Fields>
void ReadModel(Fields fields, ModelPlan& model) {
  model.kind = ReadWord<ModelKind>(fields, "kind", kModelWords);
  const bool is_conv = model.kind == ModelKind::kConvNet;
  const bool is_encoder = model.kind == ModelKind::kEncoder;
  if (model.kind == ModelKind::kMlp || (is_conv && fields.Has("hidden"))) {
    for (const std::int64_t width : fields.Ints("hidden", 1, kMaxHiddenWidth)) {
      model.hidden.push_back(Narrow(width));
    }
  }
  if (model.kind == ModelKind::kMlp || is_conv) {
    model.activation = ReadWord<Activation>(fields, "activation", kActivationWords);
  }
  if (model.kind == ModelKind::kMlp || is_conv || is_encoder) {
    model.seed = ReadSeed(fields, "seed");
  }
  if (is_conv || is_encoder) {
    model.dropout = fields.TryDouble("dropout", 0, 1).value_or(0);
  }
  if (is_encoder) {
    model.encoder = ReadEncoder(fields);
  }
}

}  // namespace domicile::contracts::internal
