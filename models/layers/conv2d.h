// A two-dimensional convolution over images, one a row: [channels, height, width].
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace domicile::models {

// Fills in what follows from the rest of the shape. The kernel must fit into the padded image.
ConvShape MakeConvShape(ConvShape shape);

struct Conv2dSpec {
  std::string name;  // NAME.weight [filters, channels, kernel, kernel] and NAME.bias [filters]
  ConvShape shape;   // from MakeConvShape
  Activation activation = Activation::kNone;  // none of the GELUs
  double initial_deviation = 0;
};

std::unique_ptr<Layer> MakeConv2d(Conv2dSpec spec);

}  // namespace domicile::models
