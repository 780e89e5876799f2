// An activation as a layer of its own.
#pragma once

#include <memory>

#include "models/layers/layer.h"

namespace domicile::models {

std::unique_ptr<Layer> MakeActivation(Activation activation);

}  // namespace domicile::models
