// Dropout: in training each element is dropped with probability `rate`, and the others grow by
// 1 / (1 - rate). Which ones is a function of the step's key, the layer's number and the place of
// the example in the global batch, so replicas together drop what one device would.
#pragma once

#include <cstdint>
#include <memory>

#include "models/layers/layer.h"

namespace domicile::models {

// `number`: another one for each dropout of a model. `rate` in [0, 1).
std::unique_ptr<Layer> MakeDropout(std::uint64_t number, float rate);

}  // namespace domicile::models
