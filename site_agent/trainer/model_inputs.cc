#include "site_agent/trainer/model_inputs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "contracts/normalisation.h"
#include "models/initial.h"
#include "site_agent/trainer/execute.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

// The constants of one normalisation tensor; without the tensor, `otherwise` for every input.
StatusOr<std::vector<double>> Constants(const std::vector<models::NamedTensor>& model,
                                        std::string_view name, std::size_t num_inputs,
                                        double otherwise) {
  const models::NamedTensor* const tensor = models::FindTensor(model, name);
  if (tensor == nullptr) {
    return std::vector<double>(num_inputs, otherwise);
  }
  if (tensor->type != models::DataType::kFloat32 ||
      tensor->shape != std::vector<std::uint64_t>{num_inputs} ||
      tensor->values.size() != num_inputs) {
    return Error(StatusCode::kInvalidArgument,
                 "tensor `" + std::string(name) + "` does not have one value for each input");
  }
  return std::vector<double>(tensor->values.begin(), tensor->values.end());
}

models::Activation ActivationOf(contracts::Activation activation) {
  switch (activation) {
    case contracts::Activation::kNone:
      return models::Activation::kNone;
    case contracts::Activation::kTanh:
      return models::Activation::kTanh;
    case contracts::Activation::kRelu:
      return models::Activation::kRelu;
    case contracts::Activation::kSigmoid:
      return models::Activation::kSigmoid;
  }
  return models::Activation::kNone;
}

}  // namespace

Fault MakeFault(Reason reason, const DatasetAlias& alias, std::string line,
                std::uint64_t rows_refused) {
  return {{reason, alias, rows_refused}, {std::move(line)}};
}

models::NetworkSpec NetworkOf(const contracts::Plan& plan) {
  return {.num_inputs = plan.NumInputs(),
          .hidden = {plan.model.hidden.begin(), plan.model.hidden.end()},
          .activation = ActivationOf(plan.model.activation),
          .num_outputs = plan.NumOutputs()};
}

models::TrainingSpec TrainingOf(const contracts::Plan& plan) {
  models::TrainingSpec spec;
  spec.model = NetworkOf(plan);
  spec.optimizer.kind = plan.training.optimizer == contracts::OptimizerKind::kAdam
                            ? models::OptimizerKind::kAdam
                            : models::OptimizerKind::kSgd;
  spec.optimizer.learning_rate = plan.training.learning_rate;
  spec.optimizer.momentum = plan.training.momentum;
  spec.l2 = plan.training.l2;
  return spec;
}

Outcome<PreparedModel> PrepareModel(const contracts::Plan& plan,
                                    const std::vector<models::NamedTensor>& model,
                                    const DatasetAlias& alias) {
  if (plan.model.kind != contracts::ModelKind::kLogistic &&
      plan.model.kind != contracts::ModelKind::kMlp) {
    return MakeFault(Reason::kModelNotAllowed, alias,
                     "this trainer has models of kind `logistic` and `mlp`; the plan's is for a "
                     "trainer of its own");
  }
  PreparedModel prepared;
  prepared.network = NetworkOf(plan);
  if (const Status status = models::CheckSpec(prepared.network); !status.ok()) {
    return MakeFault(Reason::kModelShape, alias, std::string(Message(status)));
  }
  if (const Status status = models::CheckFinite(model); !status.ok()) {
    return MakeFault(Reason::kModelNotFinite, alias, std::string(Message(status)));
  }
  StatusOr<std::vector<float>> parameters = models::FromTensors(prepared.network, model);
  if (!parameters.ok()) {
    return MakeFault(Reason::kModelShape, alias, std::string(Message(parameters.status())));
  }
  prepared.parameters = *std::move(parameters);
  StatusOr<std::vector<double>> mean =
      Constants(model, contracts::kMeanTensor, prepared.network.num_inputs, 0);
  StatusOr<std::vector<double>> deviation =
      Constants(model, contracts::kDeviationTensor, prepared.network.num_inputs, 1);
  for (const Status& status : {mean.status(), deviation.status()}) {
    if (!status.ok()) {
      return MakeFault(Reason::kNormalisation, alias, std::string(Message(status)));
    }
  }
  if (std::any_of(deviation->begin(), deviation->end(), [](double d) { return !(d > 0); })) {
    return MakeFault(Reason::kNormalisation, alias,
                     "tensor `normalisation.deviation` has a value that is not above 0");
  }
  prepared.mean = *std::move(mean);
  prepared.deviation = *std::move(deviation);
  return prepared;
}

void NormaliseRow(const PreparedModel& model, const Rows& rows, std::size_t row,
                  std::span<float> out) {
  const std::size_t first = row * rows.num_inputs;
  for (std::size_t input = 0; input < rows.num_inputs; ++input) {
    out[input] = rows.missing[first + input] != 0
                     ? 0.0F
                     : static_cast<float>((rows.inputs[first + input] - model.mean[input]) /
                                          model.deviation[input]);
  }
}

models::Tensor NormaliseRows(const PreparedModel& model, const Rows& rows, std::size_t first,
                             std::size_t count) {
  models::Tensor inputs({count, rows.num_inputs});
  for (std::size_t row = 0; row < count; ++row) {
    NormaliseRow(model, rows, first + row,
                 inputs.Values().subspan(row * rows.num_inputs, rows.num_inputs));
  }
  return inputs;
}

std::optional<std::int64_t> LossUnits(double loss) {
  const double units = std::nearbyint(loss / kLossUnit);
  // What is stored or sent in JSON must be a whole number that every reader can hold.
  if (!(std::fabs(units) <= static_cast<double>(kLargestJsonInteger))) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(units);
}

}  // namespace domicile::site_agent
