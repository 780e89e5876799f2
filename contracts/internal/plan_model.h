// What a plan's model is made of, whether trained or not; names, shapes and order as the layers of
// models/ declare them (docs/formats/job-and-plan.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "contracts/internal/fault.h"
#include "contracts/plan.h"

namespace domicile::contracts::internal {

struct ModelTensor {
  TensorSpec spec;
  bool trainable = true;  // unless a stage freezes it; false: by no stage
};

// Every tensor but the running statistics of batch norms, which never travel. Of a convolutional
// network whose blocks do not fit its image only the tensors before that block.
std::vector<ModelTensor> ModelTensors(const Plan& plan);

// The plan's own settings, if they hold in any round, then its stages.
std::vector<StagePlan> StagesOf(const TrainingPlan& training);

bool IsFrozen(const StagePlan& stage, std::string_view tensor);

struct ImageShape {
  std::uint64_t channels = 0;
  std::uint64_t height = 0;
  std::uint64_t width = 0;
};

// What a block makes of an image; empty if it does not fit.
std::optional<ImageShape> ShapeBehind(const ConvBlockPlan& block, const ImageShape& image);

// The first fault of schema and model, and of the training.
std::optional<Fault> FindModelFault(const Plan& plan);
std::optional<Fault> FindTrainingFault(const Plan& plan);

}  // namespace domicile::contracts::internal
