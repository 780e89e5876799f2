#include "site_agent/egress/model_intake.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "contracts/normalisation.h"
#include "updates/clip.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// A float32 model is rounded once each round: half a unit in the last place of each weight.
constexpr double kRoundingOfModel = std::numeric_limits<float>::epsilon();

bool HasShape(const contracts::Plan& plan, const std::vector<models::NamedTensor>& model) {
  std::vector<contracts::TensorSpec> wanted = plan.Tensors();
  if (plan.normalisation.enabled) {
    wanted.push_back({.name = contracts::kMeanTensor, .shape = {plan.NumInputs()}});
    wanted.push_back({.name = contracts::kDeviationTensor, .shape = {plan.NumInputs()}});
  }
  return std::equal(wanted.begin(), wanted.end(), model.begin(), model.end(),
                    [](const contracts::TensorSpec& spec, const models::NamedTensor& tensor) {
                      return spec.name == tensor.name && spec.shape == tensor.shape &&
                             tensor.type == models::DataType::kFloat32;
                    });
}

bool IsConstant(const models::NamedTensor& tensor) {
  return tensor.name == contracts::kMeanTensor || tensor.name == contracts::kDeviationTensor;
}

Reason CheckConstants(const contracts::Plan& plan, const IntakeState& state,
                      const std::vector<models::NamedTensor>& model) {
  if (!plan.normalisation.enabled) {
    return Reason::kNone;
  }
  bool same = true;
  for (const models::NamedTensor& tensor : model) {
    if (IsConstant(tensor)) {
      const models::NamedTensor* before = models::FindTensor(state.last, tensor.name);
      same = same && before != nullptr && before->values == tensor.values;
    }
  }
  if (same) {
    return Reason::kNone;
  }
  const models::NamedTensor& deviation = *models::FindTensor(model, contracts::kDeviationTensor);
  const bool above_floor =
      std::all_of(deviation.values.begin(), deviation.values.end(), [&](float value) {
        return static_cast<double>(value) >=
               plan.normalisation.deviation_floor * (1 - kRoundingOfModel);
      });
  return state.statistics_committed && above_floor ? Reason::kNone : Reason::kNormalisation;
}

Reason CheckStep(const contracts::Plan& plan, const IntakeState& state,
                 const std::vector<models::NamedTensor>& model) {
  double squared_step = 0;
  double squared_norm = 0;
  for (const models::NamedTensor& tensor : model) {
    if (IsConstant(tensor)) {
      continue;
    }
    const models::NamedTensor* before = models::FindTensor(state.last, tensor.name);
    if (before == nullptr || before->values.size() != tensor.values.size()) {
      return Reason::kModelShape;
    }
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const double value = tensor.values[i];
      const double step = value - static_cast<double>(before->values[i]);
      squared_step += step * step;
      squared_norm += value * value;
    }
  }
  const double one_round =
      plan.update.server_learning_rate *
      updates::LargestNormOnGrid(plan.update.clip_l2, plan.NumParameters(), plan.update.scale_bits);
  const double rounds = state.train_commits;
  // Each round may also move the model by its own rounding to float32.
  const double rounding = kRoundingOfModel * (std::sqrt(squared_norm) + rounds * one_round);
  return std::sqrt(squared_step) <= rounds * (one_round + rounding) ? Reason::kNone
                                                                    : Reason::kModelJump;
}

}  // namespace

Reason CheckModel(const contracts::Plan& plan, const IntakeState& state,
                  const std::vector<models::NamedTensor>& model) {
  if (!HasShape(plan, model)) {
    return Reason::kModelShape;
  }
  if (!models::CheckFinite(model).ok()) {
    return Reason::kModelNotFinite;
  }
  if (const Reason reason = CheckConstants(plan, state, model); reason != Reason::kNone) {
    return reason;
  }
  return CheckStep(plan, state, model);
}

}  // namespace domicile::site_agent
