// Networks of dense layers: linear and logistic regression (no hidden layer), multilayer
// perceptrons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "models/layers/layer.h"

namespace domicile::models {

enum class LossKind : std::uint8_t {
  kCrossEntropy = 0,  // of classes: binary with logits for one output, else softmax
  kSquaredError = 1,  // of numbers: the mean over the outputs
};

struct NetworkSpec {
  std::size_t num_inputs = 0;
  std::vector<std::size_t> hidden;            // widths, input side first; empty: regression
  Activation activation = Activation::kNone;  // of the hidden layers; kNone only without any
  std::size_t num_outputs = 0;
  LossKind loss = LossKind::kCrossEntropy;

  std::size_t NumClasses() const { return num_outputs == 1 ? 2 : num_outputs; }
};

// Errors: kInvalidArgument: no inputs or outputs, a hidden width of 0, more than 2^31 parameters,
// or hidden layers without an activation.
Status CheckSpec(const NetworkSpec& spec);

// Tensors "weight", "bias" without hidden layers; else "layer0.weight", "layer0.bias", ... Weights
// are [in, out], or [in] where there is no hidden layer and one output. First weights are zeros
// without hidden layers, else normal with deviation 1 / sqrt(inputs). The spec must have passed
// CheckSpec.
std::unique_ptr<Layer> MakeLayers(const NetworkSpec& spec);

}  // namespace domicile::models
