// Whether a plan's training holds together: optimizer, schedule, stages.
#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "contracts/internal/plan_check.h"
#include "contracts/internal/plan_model.h"

namespace domicile::contracts::internal {

namespace {

constexpr std::size_t kMaxStages = 64;
constexpr std::size_t kMaxPatterns = 64;
constexpr std::size_t kLongestPattern = 120;

bool IsPattern(std::string_view text) {
  return !text.empty() && text.size() <= kLongestPattern &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '*';
         });
}

// Where the settings of stage `i` stand; those of the plan itself have no number.
struct StagePlace {
  std::string table;
  std::optional<std::size_t> element;
  Fault Wrong(std::string key, std::string message) const {
    return {table, element, std::move(key), std::move(message)};
  }
};

std::optional<Fault> FindFrozenFault(const StagePlan& stage, const StagePlace& place,
                                     const std::vector<ModelTensor>& tensors) {
  if (stage.frozen.size() > kMaxPatterns) {
    return place.Wrong("frozen", "must be at most 64 patterns");
  }
  for (const std::string& pattern : stage.frozen) {
    if (!IsPattern(pattern)) {
      return place.Wrong("frozen",
                         "must be patterns of 1 to 120 letters, digits, `_`, `.` and `*`");
    }
    if (std::none_of(tensors.begin(), tensors.end(), [&pattern](const ModelTensor& tensor) {
          return MatchesPattern(pattern, tensor.spec.name);
        })) {
      return place.Wrong("frozen",
                         "has the pattern `" + pattern + "`, which no tensor of the model matches");
    }
  }
  if (std::none_of(tensors.begin(), tensors.end(), [&stage](const ModelTensor& tensor) {
        return tensor.trainable && !IsFrozen(stage, tensor.spec.name);
      })) {
    return place.Wrong("frozen", "leaves nothing to train");
  }
  return std::nullopt;
}

std::optional<Fault> FindStageFault(const Plan& plan) {
  const std::vector<StagePlan>& stages = plan.training.stages;
  if (stages.size() > kMaxStages) {
    return At("training", "stage", "must be at most 64 tables [[training.stage]]");
  }
  const std::vector<ModelTensor> tensors = ModelTensors(plan);
  const StagePlan own = {1, plan.training.frozen, plan.training.learning_rate};
  if (std::optional<Fault> fault = FindFrozenFault(own, {"training", std::nullopt}, tensors)) {
    return fault;
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StagePlace place = {"training.stage", i};
    if (!(stages[i].learning_rate > 0)) {
      return place.Wrong("learning_rate", "must be above 0");
    }
    if (i > 0 && stages[i].from_round <= stages[i - 1].from_round) {
      return place.Wrong("from_round", "must be above that of the stage before");
    }
    if (stages[i].from_round == 0 || stages[i].from_round > plan.rounds.count) {
      return place.Wrong("from_round", "must be from 1 to `rounds.count`");
    }
    if (std::optional<Fault> fault = FindFrozenFault(stages[i], place, tensors)) {
      return fault;
    }
  }
  return std::nullopt;
}

std::optional<Fault> FindOptimizerFault(const TrainingPlan& training) {
  if (training.optimizer == OptimizerKind::kNone) {
    return At("training", "optimizer", "must be one of `sgd`, `adam`, `adamw`");
  }
  if (!(training.learning_rate > 0)) {
    return At("training", "learning_rate", "must be above 0");
  }
  if (!(training.momentum < 1)) {
    return At("training", "momentum", "must be below 1");
  }
  if (training.nesterov && training.momentum == 0) {
    return At("training", "nesterov", "needs `momentum` above 0");
  }
  const bool adam = training.optimizer != OptimizerKind::kSgd;
  for (const auto& [key, beta] : {std::pair("beta1", training.beta1), {"beta2", training.beta2}}) {
    if (adam && !(beta < 1)) {
      return At("training", key, "must be below 1");
    }
  }
  if (adam && !(training.epsilon > 0)) {
    return At("training", "epsilon", "must be above 0");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> FindTrainingFault(const Plan& plan) {
  const TrainingPlan& training = plan.training;
  if ((training.local_steps == 0) == (training.local_epochs == 0)) {
    return At("training", "local_steps", "or `local_epochs` must be there, and only one of them");
  }
  if (plan.model.kind == ModelKind::kRaw) {
    return std::nullopt;
  }
  if (std::optional<Fault> fault = FindOptimizerFault(training)) {
    return fault;
  }
  if (training.schedule == ScheduleKind::kNone) {
    return At("training", "schedule", "must be one of `constant`, `cosine`");
  }
  // With epochs the number of steps is the site's.
  const std::uint64_t steps = std::uint64_t{training.local_steps} * plan.rounds.count;
  if (training.schedule == ScheduleKind::kCosine && training.local_steps != 0 &&
      training.warmup_steps >= steps) {
    return At("training", "warmup_steps",
              "must be below the steps of the whole job, rounds.count * local_steps");
  }
  if (training.batch != 0 && training.last_batch == LastBatch::kNone) {
    return At("training", "last_batch", "must be one of `keep`, `drop`");
  }
  if (training.early_stopping.enabled && training.local_epochs < 2) {
    return At("training", "early_stopping",
              "needs `local_epochs` of at least 2: it ends a round's training after an epoch");
  }
  if (training.early_stopping.enabled && !(training.early_stopping.validation_share > 0)) {
    return At("training.early_stopping", "validation_share", "must be above 0");
  }
  return FindStageFault(plan);
}

}  // namespace domicile::contracts::internal
