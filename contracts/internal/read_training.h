// The table `training` of job files and plans.
#pragma once

#include <string_view>

#include "contracts/internal/fields.h"
#include "contracts/internal/plan_check.h"
#include "contracts/internal/plan_words.h"
#include "contracts/internal/read_model.h"
#include "contracts/plan.h"

namespace domicile::contracts::internal {

inline constexpr std::string_view kNotOfRaw =
    "has no use with a raw model: its trainer has settings of its own";
inline constexpr double kDefaultBeta1 = 0.9;
inline constexpr double kDefaultBeta2 = 0.999;
inline constexpr double kDefaultEpsilon = 1e-8;
inline constexpr double kDefaultValidationShare = 0.1;

template <typename Fields>
std::vector<std::string> ReadFrozen(Fields& fields) {
  return fields.Has("frozen") ? fields.Strings("frozen") : std::vector<std::string>{};
}

template <typename Fields>
StagePlan ReadStage(Fields fields, double learning_rate) {
  StagePlan stage;
  stage.from_round = Narrow(fields.Int("from_round", 1, kMaxRounds));
  stage.frozen = ReadFrozen(fields);
  stage.learning_rate =
      fields.TryDouble("learning_rate", 0, kMaxLearningRate).value_or(learning_rate);
  return stage;
}

template <typename Fields>
void ReadOptimizer(Fields& fields, TrainingPlan& training) {
  training.optimizer = ReadWord<OptimizerKind>(fields, "optimizer", kOptimizerWords);
  training.learning_rate = fields.Double("learning_rate", 0, kMaxLearningRate);
  if (training.optimizer == OptimizerKind::kSgd) {
    training.momentum = fields.TryDouble("momentum", 0, 1).value_or(0);
    training.nesterov = fields.TryBool("nesterov").value_or(false);
    for (const std::string_view key : {"beta1", "beta2", "epsilon"}) {
      RefuseKey(fields, key, "has no use with `sgd`");
    }
  } else {
    training.beta1 = fields.TryDouble("beta1", 0, 1).value_or(kDefaultBeta1);
    training.beta2 = fields.TryDouble("beta2", 0, 1).value_or(kDefaultBeta2);
    training.epsilon = fields.TryDouble("epsilon", 0, 1).value_or(kDefaultEpsilon);
    const std::string_view why = training.optimizer == OptimizerKind::kAdam
                                     ? "has no use with `adam`"
                                     : "has no use with `adamw`";
    RefuseKey(fields, "momentum", why);
    RefuseKey(fields, "nesterov", why);
  }
  if (training.optimizer == OptimizerKind::kAdam) {
    RefuseKey(fields, "weight_decay", "has no use with `adam`; take `l2`, or `adamw`");
  } else {
    training.weight_decay = fields.TryDouble("weight_decay", 0, kMaxL2).value_or(0);
  }
  training.l2 = fields.TryDouble("l2", 0, kMaxL2).value_or(0);
  training.clip_norm = fields.TryDouble("clip_norm", 0, kMaxClipNorm).value_or(0);
}

template <typename Fields>
void ReadSchedule(Fields& fields, TrainingPlan& training) {
  training.schedule = fields.Has("schedule")
                          ? ReadWord<ScheduleKind>(fields, "schedule", kScheduleWords)
                          : ScheduleKind::kConstant;
  training.warmup_steps = Narrow(fields.TryInt("warmup_steps", 0, kMaxBatch).value_or(0));
  if (training.warmup_steps > 0) {
    training.warmup_from = fields.TryDouble("warmup_from", 0, 1).value_or(0);
  } else {
    RefuseKey(fields, "warmup_from", "has no use where `warmup_steps` is 0");
  }
}

// What a round's steps are made of.
template <typename Fields>
void ReadSteps(Fields& fields, TrainingPlan& training) {
  if (fields.Has("local_epochs")) {
    training.local_epochs = Narrow(fields.Int("local_epochs", 1, kMaxLocalEpochs));
    RefuseKey(fields, "local_steps", "cannot stand beside `local_epochs`; keep one");
  } else {
    training.local_steps = Narrow(fields.Int("local_steps", 1, kMaxLocalSteps));
  }
  training.batch = Narrow(fields.TryInt("batch", 0, kMaxBatch).value_or(0));
}

template <typename Fields>
void ReadBatches(Fields& fields, TrainingPlan& training) {
  if (training.batch == 0) {
    for (const std::string_view key : {"base_batch", "last_batch", "shuffle", "shuffle_seed"}) {
      RefuseKey(fields, key, "has no use where `batch` is 0, all rows");
    }
    return;
  }
  training.base_batch = Narrow(fields.TryInt("base_batch", 0, kMaxBatch).value_or(0));
  training.last_batch = fields.Has("last_batch")
                            ? ReadWord<LastBatch>(fields, "last_batch", kLastBatchWords)
                            : LastBatch::kKeep;
  training.shuffle = fields.TryBool("shuffle").value_or(true);
  if (training.shuffle) {
    training.shuffle_seed = ReadSeed(fields, "shuffle_seed");
  } else {
    RefuseKey(fields, "shuffle_seed", "has no use where `shuffle` is false");
  }
}

template <typename Fields>
EarlyStoppingPlan ReadEarlyStopping(Fields fields) {
  EarlyStoppingPlan stopping;
  stopping.enabled = true;
  stopping.patience = Narrow(fields.Int("patience", 1, kMaxLocalEpochs));
  stopping.min_improvement = fields.TryDouble("min_improvement", 0, kMaxMinImprovement).value_or(0);
  stopping.validation_share = fields.TryDouble("validation_share", 0, kMaxValidationShare)
                                  .value_or(kDefaultValidationShare);
  return stopping;
}

// All but the tables within.
template <typename Fields>
void ReadTraining(Fields fields, ModelKind kind, TrainingPlan& training) {
  ReadSteps(fields, training);
  if (kind == ModelKind::kRaw) {
    for (const std::string_view key :
         {"optimizer", "learning_rate", "momentum", "nesterov", "weight_decay", "beta1", "beta2",
          "epsilon", "l2", "clip_norm", "schedule", "warmup_steps", "warmup_from", "base_batch",
          "last_batch", "shuffle", "shuffle_seed", "frozen", "early_stopping"}) {
      RefuseKey(fields, key, kNotOfRaw);
    }
    return;
  }
  ReadOptimizer(fields, training);
  ReadSchedule(fields, training);
  ReadBatches(fields, training);
  training.frozen = ReadFrozen(fields);
}

}  // namespace domicile::contracts::internal
