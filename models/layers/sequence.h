// Layers put together: one after another, and around a shortcut.
#pragma once

#include <memory>
#include <vector>

#include "models/layers/layer.h"

namespace domicile::models {

using Layers = std::vector<std::unique_ptr<Layer>>;

// y = the last of them of ... of the first of x. The gradient stops at the first trained layer.
std::unique_ptr<Layer> MakeSequence(Layers layers);

// y = x + inner(x)
std::unique_ptr<Layer> MakeResidual(std::unique_ptr<Layer> inner);

}  // namespace domicile::models
