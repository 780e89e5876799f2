// From the tokens of a sequence to one row.
#pragma once

#include <cstdint>
#include <memory>

#include "models/layers/layer.h"

namespace domicile::models {

enum class TokenPoolKind : std::uint8_t {
  kMean = 0,   // of the tokens that the mask keeps
  kFirst = 1,  // the first token
};

std::unique_ptr<Layer> MakeTokenPool(TokenPoolKind kind);

}  // namespace domicile::models
