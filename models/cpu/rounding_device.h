// Mixed precision on a CPU: what hardware with 16-bit matrix products would compute, done in
// float32 with rounded operands. For tests and for a run that must match one on a GPU; it is no
// faster.
#pragma once

#include <memory>

#include "models/layers/device.h"
#include "models/precision.h"

namespace domicile::models {

// Operands of matrix products, activations and their gradients are rounded to the precision, and so
// are the gradients of the weights and biases of a product (an overflow shows as infinity). Sums
// inside an operation, normalisation, softmax, losses and what works on whole vectors of parameters
// are float32. `inner` computes in host memory. For kFloat32 it is `inner` itself.
std::unique_ptr<Device> WithPrecision(Precision precision, std::unique_ptr<Device> inner);

}  // namespace domicile::models
