// A plan and a model file, as the trainer's functions need them: network, parameters, and inputs
// brought onto the model's scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "contracts/plan.h"
#include "models/network.h"
#include "models/safetensors.h"
#include "models/strategy/strategy.h"
#include "models/tensor.h"
#include "site_agent/datasets/dataset.h"

namespace domicile::site_agent {

struct PreparedModel {
  models::NetworkSpec network;
  std::vector<float> parameters;  // flat, in the order of plan.Tensors()
  std::vector<double> mean;       // [inputs]
  std::vector<double> deviation;  // [inputs], above 0
};

// Faults: kModelNotAllowed, kModelShape, kModelNotFinite, kNormalisation; see execute.h.
Outcome<PreparedModel> PrepareModel(const contracts::Plan& plan,
                                    const std::vector<models::NamedTensor>& model,
                                    const DatasetAlias& alias);

models::NetworkSpec NetworkOf(const contracts::Plan& plan);
models::TrainingSpec TrainingOf(const contracts::Plan& plan);

// Writes (x - mean) / deviation of one row as float32; a missing input becomes 0, the mean.
void NormaliseRow(const PreparedModel& model, const Rows& rows, std::size_t row,
                  std::span<float> out);

// The rows [first, first + count) as a matrix.
models::Tensor NormaliseRows(const PreparedModel& model, const Rows& rows, std::size_t first,
                             std::size_t count);

// A fault of this dataset with one line for its operator.
Fault MakeFault(policy::Reason reason, const DatasetAlias& alias, std::string line,
                std::uint64_t rows_refused = 0);

// A sum of losses in units of kLossUnit; empty if it is not finite or too large to travel.
std::optional<std::int64_t> LossUnits(double loss);

}  // namespace domicile::site_agent
