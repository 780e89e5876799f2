#include "models/optimizer.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace domicile::models {
namespace {

bool IsFraction(double value) { return value >= 0 && value < 1; }  // false for NaN

std::size_t TotalSize(std::span<const ParameterRange> ranges) {
  std::size_t total = 0;
  for (const ParameterRange& range : ranges) {
    total += range.size;
  }
  return total;
}

Status Invalid(const char* what) { return Error(StatusCode::kInvalidArgument, what); }

Status CheckSgd(const OptimizerSpec& spec) {
  if (!IsFraction(spec.momentum) || !IsFraction(spec.dampening)) {
    return Invalid("`momentum` and `dampening` must be from 0 to below 1");
  }
  if (spec.nesterov && (spec.momentum == 0 || spec.dampening != 0)) {
    return Invalid("`nesterov` needs `momentum`, and no `dampening`");
  }
  return OkStatus();
}

Status CheckAdam(const OptimizerSpec& spec) {
  if (!IsFraction(spec.beta1) || !IsFraction(spec.beta2) || !(spec.epsilon > 0)) {
    return Invalid("Adam's betas must be from 0 to below 1, and epsilon above 0");
  }
  if (spec.kind == OptimizerKind::kAdam && spec.weight_decay != 0) {
    return Invalid("`weight_decay` goes with SGD and AdamW; Adam's L2 belongs to the loss");
  }
  return OkStatus();
}

}  // namespace

Status CheckSpec(const OptimizerSpec& spec) {
  if (!std::isfinite(spec.learning_rate) || !(spec.learning_rate > 0)) {
    return Invalid("`learning_rate` must be above 0 and finite");
  }
  if (!std::isfinite(spec.weight_decay) || !(spec.weight_decay >= 0)) {
    return Invalid("`weight_decay` must be 0 or above, and finite");
  }
  switch (spec.kind) {
    case OptimizerKind::kNone:
      return Invalid("an optimizer must be named");
    case OptimizerKind::kSgd:
      return CheckSgd(spec);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return CheckAdam(spec);
  }
  return Invalid("an optimizer of unknown kind");
}

Status CheckSchedule(const Schedule& schedule) {
  if (!(schedule.warmup_from >= 0) || !(schedule.warmup_from <= 1)) {
    return Invalid("`warmup_from` must be from 0 to 1");
  }
  if (schedule.kind == ScheduleKind::kCosine && schedule.total_steps <= schedule.warmup_steps) {
    return Invalid("a cosine schedule must be longer than its warm-up");
  }
  return OkStatus();
}

double RateShare(const Schedule& schedule, std::uint64_t step) {
  if (step < schedule.warmup_steps) {
    const double done = static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
    return schedule.warmup_from + (1 - schedule.warmup_from) * done;
  }
  if (schedule.kind == ScheduleKind::kConstant) {
    return 1;
  }
  if (step >= schedule.total_steps) {
    return 0;
  }
  const double done = static_cast<double>(step - schedule.warmup_steps) /
                      static_cast<double>(schedule.total_steps - schedule.warmup_steps);
  return 0.5 * (1 + std::cos(std::numbers::pi * done));
}

double ScaledRate(double base_rate, std::size_t base_batch, std::size_t batch) {
  return base_rate * static_cast<double>(batch) / static_cast<double>(base_batch);
}

double ClipByGlobalNorm(double max_norm, std::span<const ParameterRange> ranges,
                        std::span<float> gradient, Device& device) {
  double squared = 0;
  for (const ParameterRange& range : ranges) {
    squared += device.SquaredNorm(gradient.subspan(range.offset, range.size));
  }
  const double norm = std::sqrt(squared);
  const double share = max_norm / (norm + 1e-6);
  if (std::isfinite(norm) && share < 1) {
    for (const ParameterRange& range : ranges) {
      device.Scale(static_cast<float>(share), gradient.subspan(range.offset, range.size));
    }
  }
  return norm;
}

Optimizer::Optimizer(OptimizerSpec spec, std::vector<ParameterRange> ranges, Device& device)
    : spec_(spec),
      ranges_(std::move(ranges)),
      device_(&device),
      first_({TotalSize(ranges_)}, device.memory()) {
  DOMICILE_CHECK(CheckSpec(spec_).ok());
  if (spec_.kind != OptimizerKind::kSgd) {
    second_ = Tensor({TotalSize(ranges_)}, device.memory());
  }
}

OptimizerState Optimizer::State() const {
  const auto copy = [](const Tensor& tensor) {
    std::vector<float> values(tensor.NumElements());
    Copy(tensor.memory(), tensor.Values(), std::span(values));
    return values;
  };
  return {.num_steps = num_steps_, .first = copy(first_), .second = copy(second_)};
}

Status Optimizer::Restore(const OptimizerState& state) {
  if (state.first.size() != first_.NumElements() || state.second.size() != second_.NumElements()) {
    return Invalid("the moments are not those of this optimizer and these trained tensors");
  }
  num_steps_ = state.num_steps;
  Copy(first_.memory(), std::span(state.first), first_.Values());
  Copy(second_.memory(), std::span(state.second), second_.Values());
  return OkStatus();
}

void Optimizer::Step(std::span<const float> gradient, std::span<float> parameters,
                     double rate_share) {
  const double steps = static_cast<double>(++num_steps_);
  const float rate = static_cast<float>(spec_.learning_rate * rate_share);
  std::size_t at = 0;
  for (const ParameterRange& range : ranges_) {
    const std::span<const float> g = gradient.subspan(range.offset, range.size);
    const std::span<float> w = parameters.subspan(range.offset, range.size);
    const std::span<float> first = first_.Values().subspan(at, range.size);
    const float decay = static_cast<float>(range.decays ? spec_.weight_decay : 0);
    if (spec_.kind == OptimizerKind::kSgd) {
      device_->Sgd({.learning_rate = rate,
                    .momentum = static_cast<float>(spec_.momentum),
                    .gradient_share = num_steps_ == 1 ? 1 : static_cast<float>(1 - spec_.dampening),
                    .weight_decay = decay,
                    .nesterov = spec_.nesterov},
                   g, first, w);
    } else {
      device_->Adam({.learning_rate = rate,
                     .beta1 = static_cast<float>(spec_.beta1),
                     .beta2 = static_cast<float>(spec_.beta2),
                     .epsilon = static_cast<float>(spec_.epsilon),
                     .correction1 = static_cast<float>(1 - std::pow(spec_.beta1, steps)),
                     .correction2 = static_cast<float>(1 - std::pow(spec_.beta2, steps)),
                     .decoupled_decay = decay},
                    g, first, second_.Values().subspan(at, range.size), w);
    }
    at += range.size;
  }
}

}  // namespace domicile::models
