// Optimizers over a flat vector of parameters, and what is done to a gradient and a rate before a
// step; the formulas are PyTorch's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "models/layers/device.h"
#include "models/layers/parameter.h"
#include "models/tensor.h"

namespace domicile::models {

// Stored in plans elsewhere under the same numbers: append, never renumber.
enum class OptimizerKind : std::uint8_t { kNone = 0, kSgd = 1, kAdam = 2, kAdamW = 3 };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kNone;
  double learning_rate = 0;
  // SGD: g += weight_decay * w; buf = momentum * buf + (1 - dampening) * g (the first time buf =
  // g); w -= rate * (nesterov ? g + momentum * buf : buf)
  double momentum = 0;
  // Adam: w -= rate * m_hat / (sqrt(v_hat) + epsilon)
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double dampening = 0;
  bool nesterov = false;    // needs momentum, and no dampening
  double weight_decay = 0;  // SGD as above; AdamW: w *= 1 - rate * weight_decay first; Adam: 0
};

// Errors: kInvalidArgument, naming the field: no kind, a rate that is not positive and finite,
// momentum, dampening or a beta outside [0, 1), an epsilon that is not positive, a decay below 0 or
// with Adam (its L2 belongs to the loss).
Status CheckSpec(const OptimizerSpec& spec);

// How the rate of a step follows from the rate of the optimizer.
enum class ScheduleKind : std::uint8_t { kConstant = 0, kCosine = 1 };

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::uint64_t warmup_steps = 0;  // linear, from warmup_from (not reached) to 1
  double warmup_from = 0;
  std::uint64_t total_steps = 0;  // kCosine: falls to 0 there, and stays
};

// Errors: kInvalidArgument: warmup_from outside [0, 1], a cosine not longer than its warm-up.
Status CheckSchedule(const Schedule& schedule);

// The share of the rate at step 0, 1, ... In the warm-up from + (1 - from) (step + 1) / warmup;
// then 1, or 0.5 (1 + cos(pi (step - warmup) / (total - warmup))).
double RateShare(const Schedule& schedule, std::uint64_t step);

// The linear scaling rule (Goyal et al. 2017): k times the batch, k times the rate. To be used with
// a warm-up from base_batch / batch.
double ScaledRate(double base_rate, std::size_t base_batch, std::size_t batch);

// Scales the gradient of `ranges` so that their common norm is at most `max_norm`, by PyTorch's
// min(1, max_norm / (norm + 1e-6)). Returns the norm before; a norm that is not finite leaves the
// gradient as it is.
double ClipByGlobalNorm(double max_norm, std::span<const ParameterRange> ranges,
                        std::span<float> gradient, Device& device);

// What an optimizer remembers: the moments of its ranges, one after another.
struct OptimizerState {
  std::uint64_t num_steps = 0;
  std::vector<float> first{};   // momentum, or Adam's first moment
  std::vector<float> second{};  // Adam's second moment; empty for SGD

  friend bool operator==(const OptimizerState&, const OptimizerState&) = default;
};

// Holds the state between steps. Borrows the device. One thread at a time.
class Optimizer {
 public:
  // The spec must have passed CheckSpec. Only the ranges change, and only they need state.
  Optimizer(OptimizerSpec spec, std::vector<ParameterRange> ranges, Device& device);

  // One step along -gradient, at that share of the learning rate.
  void Step(std::span<const float> gradient, std::span<float> parameters, double rate_share = 1);

  // How many steps it has made.
  std::uint64_t NumSteps() const { return num_steps_; }
  std::uint64_t StateBytes() const {
    return (first_.NumElements() + second_.NumElements()) * sizeof(float);
  }
  OptimizerState State() const;
  // Goes on where the optimizer that gave the state stood. Errors, nothing changed:
  // kInvalidArgument: moments of another size or kind of optimizer.
  Status Restore(const OptimizerState& state);

 private:
  OptimizerSpec spec_;
  std::vector<ParameterRange> ranges_;
  Device* device_;
  std::uint64_t num_steps_ = 0;
  Tensor first_;   // momentum, or Adam's first moment; the ranges one after another
  Tensor second_;  // Adam's second moment
};

}  // namespace domicile::models
