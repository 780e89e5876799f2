// Plans to their canonical text.
#include <utility>

#include "base/json.h"
#include "contracts/internal/fields.h"
#include "contracts/internal/plan_words.h"
#include "contracts/plan.h"

namespace domicile::contracts {

namespace {

using internal::Decimal;
using internal::Decimals;
using internal::WordOf;

template <typename T>
Json Numbers(const std::vector<T>& values) {
  return JsonArray(values.begin(), values.end());
}

Json Texts(const std::vector<std::string>& values) {
  return JsonArray(values.begin(), values.end());
}

Json BlockJson(const ConvBlockPlan& block) {
  Json json;
  json.Set("filters", block.filters);
  json.Set("kernel", block.kernel);
  json.Set("stride", block.stride);
  json.Set("padding", block.padding);
  json.Set("norm", WordOf(internal::kNormWords, block.norm));
  if (block.norm == NormKind::kGroup) {
    json.Set("groups", block.groups);
  }
  json.Set("pool", block.pool);
  return json;
}

void SetEncoder(const EncoderPlan& encoder, Json& json) {
  json.Set("vocabulary", encoder.vocabulary);
  json.Set("positions", encoder.positions);
  json.Set("types", encoder.types);
  json.Set("width", encoder.width);
  json.Set("layers", encoder.layers);
  json.Set("heads", encoder.heads);
  json.Set("intermediate", encoder.intermediate);
  json.Set("pooling", WordOf(internal::kPoolingWords, encoder.pooling));
  json.Set("lora_rank", encoder.lora_rank);
  if (encoder.lora_rank > 0) {
    json.Set("lora_alpha", Decimal(encoder.lora_alpha));
  }
  if (encoder.pretrained) {
    json.Set("pretrained", PrintHex(*encoder.pretrained));
  }
}

Json TensorsJson(const std::vector<TensorSpec>& tensors) {
  JsonArray list;
  for (const TensorSpec& tensor : tensors) {
    Json item;
    item.Set("name", tensor.name);
    item.Set("shape", Numbers(tensor.shape));
    list.push_back(std::move(item));
  }
  return list;
}

Json ModelJson(const ModelPlan& model) {
  Json json;
  json.Set("kind", WordOf(internal::kModelWords, model.kind));
  const bool is_conv = model.kind == ModelKind::kConvNet;
  const bool is_encoder = model.kind == ModelKind::kEncoder;
  if (model.kind == ModelKind::kMlp || is_conv) {
    json.Set("hidden", Numbers(model.hidden));
    json.Set("activation", WordOf(internal::kActivationWords, model.activation));
  }
  if (model.kind == ModelKind::kMlp || is_conv || is_encoder) {
    json.Set("seed", model.seed);
  }
  if (is_conv || is_encoder) {
    json.Set("dropout", Decimal(model.dropout));
  }
  if (is_conv) {
    JsonArray blocks;
    for (const ConvBlockPlan& block : model.blocks) {
      blocks.push_back(BlockJson(block));
    }
    json.Set("blocks", std::move(blocks));
  }
  if (is_encoder) {
    SetEncoder(model.encoder, json);
  }
  if (model.kind == ModelKind::kRaw) {
    json.Set("tensors", TensorsJson(model.tensors));
  }
  return json;
}

void SetOptimizer(const TrainingPlan& training, Json& json) {
  json.Set("optimizer", WordOf(internal::kOptimizerWords, training.optimizer));
  json.Set("learning_rate", Decimal(training.learning_rate));
  if (training.optimizer == OptimizerKind::kSgd) {
    json.Set("momentum", Decimal(training.momentum));
    json.Set("nesterov", training.nesterov);
  } else {
    json.Set("beta1", Decimal(training.beta1));
    json.Set("beta2", Decimal(training.beta2));
    json.Set("epsilon", Decimal(training.epsilon));
  }
  if (training.optimizer != OptimizerKind::kAdam) {
    json.Set("weight_decay", Decimal(training.weight_decay));
  }
  json.Set("l2", Decimal(training.l2));
  json.Set("clip_norm", Decimal(training.clip_norm));
  json.Set("schedule", WordOf(internal::kScheduleWords, training.schedule));
  json.Set("warmup_steps", training.warmup_steps);
  if (training.warmup_steps > 0) {
    json.Set("warmup_from", Decimal(training.warmup_from));
  }
}

void SetBatches(const TrainingPlan& training, Json& json) {
  json.Set("base_batch", training.base_batch);
  json.Set("last_batch", WordOf(internal::kLastBatchWords, training.last_batch));
  json.Set("shuffle", training.shuffle);
  if (training.shuffle) {
    json.Set("shuffle_seed", training.shuffle_seed);
  }
}

Json EarlyStoppingJson(const EarlyStoppingPlan& stopping) {
  Json json;
  json.Set("patience", stopping.patience);
  json.Set("min_improvement", Decimal(stopping.min_improvement));
  json.Set("validation_share", Decimal(stopping.validation_share));
  return json;
}

Json TrainingJson(const Plan& plan) {
  const TrainingPlan& training = plan.training;
  Json json;
  if (training.local_epochs == 0) {
    json.Set("local_steps", training.local_steps);
  } else {
    json.Set("local_epochs", training.local_epochs);
  }
  json.Set("batch", training.batch);
  if (plan.model.kind == ModelKind::kRaw) {
    return json;
  }
  SetOptimizer(training, json);
  if (training.batch != 0) {
    SetBatches(training, json);
  }
  if (training.early_stopping.enabled) {
    json.Set("early_stopping", EarlyStoppingJson(training.early_stopping));
  }
  json.Set("frozen", Texts(training.frozen));
  JsonArray stages;
  for (const StagePlan& stage : training.stages) {
    Json item;
    item.Set("from_round", stage.from_round);
    item.Set("frozen", Texts(stage.frozen));
    item.Set("learning_rate", Decimal(stage.learning_rate));
    stages.push_back(std::move(item));
  }
  json.Set("stages", std::move(stages));
  return json;
}

Json NormalisationJson(const NormalisationPlan& normalisation) {
  Json json;
  json.Set("deviation_floor", Decimal(normalisation.deviation_floor));
  json.Set("scale_bits", normalisation.scale_bits);
  json.Set("max_rows", normalisation.max_rows);
  json.Set("offsets", Decimals(normalisation.offsets));
  json.Set("ranges", Decimals(normalisation.ranges));
  return json;
}

Json RoundsJson(const RoundsPlan& rounds) {
  Json json;
  json.Set("count", rounds.count);
  json.Set("quorum", rounds.quorum);
  json.Set("deadline_seconds", std::int64_t{rounds.deadline.count()});
  json.Set("attempts", rounds.attempts);
  json.Set("start_after_seconds", std::int64_t{rounds.start_after.count()});
  return json;
}

Json UpdateJson(const UpdatePlan& update) {
  Json json;
  json.Set("view", WordOf(internal::kViewWords, update.view));
  json.Set("clip_l2", Decimal(update.clip_l2));
  json.Set("scale_bits", update.scale_bits);
  if (update.value_bits != 0) {
    json.Set("value_bits", update.value_bits);
  }
  json.Set("weight", WordOf(internal::kWeightWords, update.weight));
  json.Set("max_weight", update.max_weight);
  json.Set("max_sites", update.max_sites);
  json.Set("server_learning_rate", Decimal(update.server_learning_rate));
  return json;
}

}  // namespace

std::string PlanText(const Plan& plan) {
  Json json;
  json.Set("v", 1);
  json.Set("name", plan.name);
  json.Set("purpose", plan.purpose);
  json.Set("dataset", plan.dataset.text());
  json.Set("recipients", Texts(plan.recipients));
  if (plan.model.kind != ModelKind::kRaw) {
    json.Set("schema", ToJson(plan.schema));
  }
  json.Set("model", ModelJson(plan.model));
  json.Set("training", TrainingJson(plan));
  if (plan.normalisation.enabled) {
    json.Set("normalisation", NormalisationJson(plan.normalisation));
  }
  json.Set("rounds", RoundsJson(plan.rounds));
  json.Set("update", UpdateJson(plan.update));
  if (plan.evaluation.enabled) {
    Json evaluation;
    if (plan.evaluation.bins > 0) {
      evaluation.Set("bins", plan.evaluation.bins);
    }
    json.Set("evaluation", std::move(evaluation));
  }
  return PrintJson(json);
}

}  // namespace domicile::contracts
