// What the work of a phase is done on: a model and rows that fit it. Where a job trains the head of
// an encoder alone, that is the head, on rows that the encoder has turned into numbers once: no
// round changes them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contracts/plan.h"
#include "models/plans/pretrained.h"
#include "models/safetensors.h"
#include "models/strategy/strategy.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/trainer/model_inputs.h"

namespace domicile::site_agent {

// Kept beside a dataset from task to task.
struct FrozenFeatures {
  std::string plan;  // the text of the plan they were made for; empty: none yet
  Rows training;
  Rows test;
};

struct ModelSources {
  const models::PretrainedModels* pretrained = nullptr;  // null: none are here
  FrozenFeatures* features = nullptr;                    // of this dataset; null: made each time
};

struct Work {
  PreparedModel model;
  const Rows* training = nullptr;  // of the dataset or of the features
  const Rows* test = nullptr;
  bool head_alone = false;
  std::unique_ptr<FrozenFeatures> own_features;  // where the caller keeps none
};

// Faults: those of PrepareModel; kModelShape: the data was not built for the plan.
Outcome<Work> PrepareWork(const contracts::Plan& plan, const LoadedDataset& data,
                          const std::vector<models::NamedTensor>& model,
                          const ModelSources& sources);

// The steps of a round on that model.
models::TrainingSpec TrainingOf(const contracts::Plan& plan, const Work& work, RoundNumber round,
                                std::uint64_t steps);

// What the steps changed of what travels, in the order of plan.Tensors().
std::vector<models::NamedTensor> DeltaOf(const contracts::Plan& plan, const Work& work,
                                         std::span<const float> trained);

}  // namespace domicile::site_agent
