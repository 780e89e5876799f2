// Low-rank adaptation of a frozen dense layer (Hu et al. 2021): y = x W + b + (alpha / rank) x A^T
// B^T. A is random and, unless asked for, frozen, so that the mean of the sites' B is exact: the
// mean of products is not the product of means. B starts at zero.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "models/layers/dense.h"
#include "models/layers/layer.h"

namespace domicile::models {

struct LoraSpec {
  std::size_t rank = 0;
  double alpha = 0;
  bool trains_a = false;
};

// The dense layer's tensors, frozen, then NAME.lora_A.weight [rank, inputs] and NAME.lora_B.weight
// [outputs, rank].
std::unique_ptr<Layer> MakeLora(DenseSpec dense, const LoraSpec& lora);

}  // namespace domicile::models
