// A plan, a model file and rows, as the trainer's functions need them: parameters, and batches on
// the model's scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "contracts/plan.h"
#include "models/model.h"
#include "models/plans/pretrained.h"
#include "models/safetensors.h"
#include "models/tensor.h"
#include "site_agent/datasets/dataset.h"

namespace domicile::site_agent {

struct PreparedModel {
  models::ModelSpec spec;
  std::vector<float> parameters;  // flat, what does not travel included
  std::vector<double> mean;       // [inputs] of a table
  std::vector<double> deviation;  // [inputs] of a table, above 0
  std::vector<float> pixel;       // [channels, 256]: what the model sees of each value
  contracts::NumberLabel number;  // of a label that is a number
};

// Faults: kModelNotAllowed, kModelShape, kModelNotFinite, kNormalisation; see execute.h.
Outcome<PreparedModel> PrepareModel(const contracts::Plan& plan,
                                    const std::vector<models::NamedTensor>& model,
                                    const DatasetAlias& alias,
                                    const models::PretrainedModels& pretrained = {});

// Rows on their way to a model.
struct RowBatch {
  models::Tensor inputs;              // [rows, inputs]; of a table or of pictures
  std::vector<std::uint32_t> tokens;  // [rows, length]
  std::vector<std::uint8_t> mask;     // [rows, length]: 0 is padding
  std::size_t length = 0;             // of the longest text of these; 0: no texts
  std::vector<std::uint32_t> labels;  // empty where the label is a number
  models::Tensor targets;             // [rows, 1] where it is
  std::vector<std::size_t> indices;   // of the rows

  models::BatchView View() const;
  std::uint64_t NumBytes() const;
};

// A table's numbers become (x - mean) / deviation, a missing one 0, the mean; values of pictures
// and labels that are numbers are scaled as the plan says.
RowBatch MakeBatch(const PreparedModel& model, const Rows& rows, std::vector<std::size_t> indices);
// The rows [first, first + count).
RowBatch MakeBatch(const PreparedModel& model, const Rows& rows, std::size_t first,
                   std::size_t count);

// How many rows go through such a model at once where only their sum or their outputs are wanted.
std::size_t RowsAtOnce(const models::ModelSpec& spec);

// Whether the rows have the inputs and the classes of the plan.
bool Fits(const contracts::Plan& plan, const Rows& rows);

// A fault of this dataset with one line for its operator.
Fault MakeFault(policy::Reason reason, const DatasetAlias& alias, std::string line,
                std::uint64_t rows_refused = 0);

// A sum of losses in units of kLossUnit; empty if it is not finite or too large to travel.
std::optional<std::int64_t> LossUnits(double loss);

}  // namespace domicile::site_agent
