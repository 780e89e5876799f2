// First weights of a network.
#pragma once

#include <cstdint>
#include <vector>

#include "models/network.h"
#include "models/safetensors.h"

namespace domicile::models {

// All zeros without hidden layers. With hidden layers: weights normal with deviation
// 1 / sqrt(inputs of the layer), drawn in the order of the tensors from SeededRandom(seed) (two
// uniforms of 53 bits a pair, Box and Muller), biases zero. The spec must have passed CheckSpec.
std::vector<float> InitialParameters(const NetworkSpec& spec, std::uint64_t seed);

// The flat vector as named tensors in order, and back. Errors of the second: kInvalidArgument, a
// tensor missing, of another shape or not F32; tensors the layout does not name are ignored.
std::vector<NamedTensor> ToTensors(const NetworkSpec& spec, const std::vector<float>& parameters);
StatusOr<std::vector<float>> FromTensors(const NetworkSpec& spec,
                                         const std::vector<NamedTensor>& tensors);

}  // namespace domicile::models
