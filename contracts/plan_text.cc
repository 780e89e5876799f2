// Plans to their canonical text.
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "contracts/internal/plan_words.h"
#include "contracts/plan.h"

namespace domicile::contracts {

namespace {

using internal::WordOf;

// Adding 0.0 turns -0 into 0: one spelling for one value.
Json Decimal(double value) { return PrintDouble(value + 0.0); }

Json Decimals(const std::vector<double>& values) {
  JsonArray items;
  for (const double value : values) {
    items.push_back(Decimal(value));
  }
  return items;
}

template <typename T>
Json Numbers(const std::vector<T>& values) {
  return JsonArray(values.begin(), values.end());
}

Json ModelJson(const ModelPlan& model) {
  Json json;
  json.Set("kind", WordOf(internal::kModelWords, model.kind));
  if (model.kind == ModelKind::kMlp) {
    json.Set("hidden", Numbers(model.hidden));
    json.Set("activation", WordOf(internal::kActivationWords, model.activation));
    json.Set("seed", model.seed);
  }
  if (model.kind == ModelKind::kRaw) {
    JsonArray tensors;
    for (const TensorSpec& tensor : model.tensors) {
      Json item;
      item.Set("name", tensor.name);
      item.Set("shape", Numbers(tensor.shape));
      tensors.push_back(std::move(item));
    }
    json.Set("tensors", std::move(tensors));
  }
  return json;
}

Json TrainingJson(const Plan& plan) {
  const TrainingPlan& training = plan.training;
  Json json;
  if (plan.model.kind != ModelKind::kRaw) {
    json.Set("optimizer", WordOf(internal::kOptimizerWords, training.optimizer));
    json.Set("learning_rate", Decimal(training.learning_rate));
    if (training.optimizer == OptimizerKind::kSgd) {
      json.Set("momentum", Decimal(training.momentum));
    }
    json.Set("l2", Decimal(training.l2));
    if (training.batch != 0) {
      json.Set("shuffle_seed", training.shuffle_seed);
    }
  }
  json.Set("local_steps", training.local_steps);
  json.Set("batch", training.batch);
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
  json.Set("recipients", JsonArray(plan.recipients.begin(), plan.recipients.end()));
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
    evaluation.Set("bins", plan.evaluation.bins);
    json.Set("evaluation", std::move(evaluation));
  }
  return PrintJson(json);
}

}  // namespace domicile::contracts
