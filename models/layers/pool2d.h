// Pooling of images, one a row: [channels, height, width].
#pragma once

#include <cstdint>
#include <memory>

#include "models/layers/layer.h"

namespace domicile::models {

enum class PoolKind : std::uint8_t { kMax = 0, kAverage = 1 };

// Fills in what follows from the rest. The window must fit into the image.
PoolShape MakePoolShape(PoolShape shape);

// The gradient of a maximum goes to the first of equals.
std::unique_ptr<Layer> MakePool2d(PoolKind kind, const PoolShape& shape);

}  // namespace domicile::models
