// Multi-head self-attention: three projections of the input, and for each head the softmax of their
// products. What follows (the output projection) is a dense layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/layers/layer.h"

namespace domicile::models {

struct AttentionSpec {
  std::unique_ptr<Layer> query;  // each [tokens, heads * width] out of the layer's input
  std::unique_ptr<Layer> key;
  std::unique_ptr<Layer> value;
  std::size_t heads = 0;
  std::size_t width = 0;  // of a head
  bool causal = false;
  float dropout = 0;                 // of the probabilities
  std::uint64_t dropout_number = 0;  // see MakeDropout
};

// The lengths and the mask are those of the tokens of the pass.
std::unique_ptr<Layer> MakeAttention(AttentionSpec spec);

}  // namespace domicile::models
