// Optimizers over a flat vector of parameters; the formulas are PyTorch's.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "models/layers/device.h"
#include "models/tensor.h"

namespace domicile::models {

// Stored in plans elsewhere under the same numbers: append, never renumber.
enum class OptimizerKind : std::uint8_t { kNone = 0, kSgd = 1, kAdam = 2 };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kNone;
  double learning_rate = 0;
  double momentum = 0;  // SGD: buf = momentum * buf + g (the first time buf = g); w -= rate * buf
  double beta1 = 0.9;   // Adam: w -= rate * m_hat / (sqrt(v_hat) + epsilon)
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// Errors: kInvalidArgument: no kind, a rate that is not positive and finite, momentum or a beta
// outside [0, 1), an epsilon that is not positive.
Status CheckSpec(const OptimizerSpec& spec);

// Holds the state between steps. Borrows the device. One thread at a time.
class Optimizer {
 public:
  // The spec must have passed CheckSpec.
  Optimizer(OptimizerSpec spec, std::size_t num_parameters, Device& device);

  // One step along -gradient.
  void Step(std::span<const float> gradient, std::span<float> parameters);

 private:
  OptimizerSpec spec_;
  Device* device_;
  std::uint64_t num_steps_ = 0;
  Tensor first_;   // momentum, or Adam's first moment
  Tensor second_;  // Adam's second moment
};

}  // namespace domicile::models
