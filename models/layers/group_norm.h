// Group norm and layer norm: statistics of one example only, so a federated model needs nothing
// beyond the average of scale and shift. The default for images.
#pragma once

#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace domicile::models {

// NAME.weight and NAME.bias, [channels] each, as PyTorch names scale and shift.
std::unique_ptr<Layer> MakeGroupNorm(std::string name, const NormShape& shape);

// Over the last axis: one group, one position.
std::unique_ptr<Layer> MakeLayerNorm(std::string name, std::size_t columns, float epsilon);

}  // namespace domicile::models
