// A dense layer: y = x W + b, and then an activation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace domicile::models {

struct DenseSpec {
  std::string name;  // of the tensors: NAME.weight and NAME.bias; empty: weight and bias
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  Activation activation = Activation::kNone;  // none of the GELUs: they are layers of their own
  WeightLayout layout = WeightLayout::kOutIn;
  bool vector_weight = false;  // the weight's shape is [inputs]; for one output
  double initial_deviation = 0;
};

std::unique_ptr<Layer> MakeDense(DenseSpec spec);

}  // namespace domicile::models
