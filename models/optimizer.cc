#include "models/optimizer.h"

#include <cmath>

namespace domicile::models {
namespace {

bool IsFraction(double value) { return value >= 0 && value < 1; }  // false for NaN

}  // namespace

Status CheckSpec(const OptimizerSpec& spec) {
  if (!std::isfinite(spec.learning_rate) || !(spec.learning_rate > 0)) {
    return Error(StatusCode::kInvalidArgument, "`learning_rate` must be above 0 and finite");
  }
  switch (spec.kind) {
    case OptimizerKind::kNone:
      return Error(StatusCode::kInvalidArgument, "an optimizer must be named");
    case OptimizerKind::kSgd:
      if (!IsFraction(spec.momentum)) {
        return Error(StatusCode::kInvalidArgument, "`momentum` must be from 0 to below 1");
      }
      return OkStatus();
    case OptimizerKind::kAdam:
      if (!IsFraction(spec.beta1) || !IsFraction(spec.beta2) || !(spec.epsilon > 0)) {
        return Error(StatusCode::kInvalidArgument,
                     "Adam's betas must be from 0 to below 1, and epsilon above 0");
      }
      return OkStatus();
  }
  return Error(StatusCode::kInvalidArgument, "an optimizer of unknown kind");
}

Optimizer::Optimizer(OptimizerSpec spec, std::size_t num_parameters, Device& device)
    : spec_(spec), device_(&device), first_({num_parameters}) {
  DOMICILE_CHECK(CheckSpec(spec_).ok());
  if (spec_.kind == OptimizerKind::kAdam) {
    second_ = Tensor({num_parameters});
  }
}

void Optimizer::Step(std::span<const float> gradient, std::span<float> parameters) {
  ++num_steps_;
  if (spec_.kind == OptimizerKind::kSgd) {
    device_->Sgd({.learning_rate = static_cast<float>(spec_.learning_rate),
                  .momentum = static_cast<float>(spec_.momentum)},
                 gradient, first_.Values(), parameters);
    return;
  }
  const double steps = static_cast<double>(num_steps_);
  device_->Adam({.learning_rate = static_cast<float>(spec_.learning_rate),
                 .beta1 = static_cast<float>(spec_.beta1),
                 .beta2 = static_cast<float>(spec_.beta2),
                 .epsilon = static_cast<float>(spec_.epsilon),
                 .correction1 = static_cast<float>(1 - std::pow(spec_.beta1, steps)),
                 .correction2 = static_cast<float>(1 - std::pow(spec_.beta2, steps))},
                gradient, first_.Values(), second_.Values(), parameters);
}

}  // namespace domicile::models
