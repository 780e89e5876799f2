// Encoders of BERT's architecture (Devlin et al. 2019), with plain BERT tensor names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/layers/layer.h"
#include "models/layers/lora.h"
#include "models/network.h"
#include "models/safetensors.h"

namespace domicile::models {

// From the tokens of the last layer to one row.
enum class Pooling : std::uint8_t {
  kMean = 0,   // mean of the tokens the mask keeps; sentence embeddings
  kFirst = 1,  // tanh(x W + b) of the first token: BERT's pooler, tensors pooler.dense.*
};

struct EncoderSpec {
  std::size_t vocabulary = 0;
  std::size_t positions = 0;  // longest sequence
  std::size_t types = 2;
  std::size_t hidden = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t intermediate = 0;
  Activation activation = Activation::kGelu;  // kGelu or kGeluTanh
  float epsilon = 1e-12F;
  float dropout = 0;  // of embeddings, attention, each sublayer's output, and before the head
  Pooling pooling = Pooling::kMean;
  std::size_t num_outputs = 0;  // of the head, classifier.*; 0: no head, the pooled row itself
  LossKind loss = LossKind::kCrossEntropy;
  LoraSpec lora{};  // rank 0: none. Else on query and value: all but those and the head are frozen
};

// all-MiniLM-L6-v2, without a head.
EncoderSpec MiniLmSpec();

// Errors: kInvalidArgument, naming the field: a size of 0 or beyond 2^31 parameters, heads that do
// not divide the width, another activation than a GELU, dropout outside [0, 1), alpha of an adapter
// that is not above 0.
Status CheckSpec(const EncoderSpec& spec);

std::unique_ptr<Layer> MakeLayers(const EncoderSpec& spec);

// Fills `parameters` of that spec from a pretrained file: every tensor of the encoder must be there
// in its shape; classifier.*, adapters and the pooler keep their first values where the file lacks
// them. Tensors of the file that the encoder does not name are ignored. Errors: kInvalidArgument,
// naming the tensor: missing, of another shape or not F32, or not finite.
Status LoadPretrained(const EncoderSpec& spec, std::span<const NamedTensor> tensors,
                      std::span<float> parameters);

}  // namespace domicile::models
