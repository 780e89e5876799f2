// The embeddings of BERT: the sum of a vector for the token, one for its place and one for its
// type.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace domicile::models {

struct EmbeddingSpec {
  // PREFIX.word_embeddings.weight, PREFIX.position_embeddings.weight,
  // PREFIX.token_type_embeddings.weight
  std::string prefix;
  std::size_t vocabulary = 0;
  std::size_t positions = 0;  // longest sequence
  std::size_t types = 0;
  std::size_t width = 0;
  double initial_deviation = 0;
};

// Reads the tokens of the pass, whatever its input. Ids and types must be in range.
std::unique_ptr<Layer> MakeEmbedding(EmbeddingSpec spec);

}  // namespace domicile::models
