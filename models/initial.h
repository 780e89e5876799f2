// First weights of a model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"
#include "models/safetensors.h"

namespace domicile::models {

// What each tensor's view asks for: its initial value, plus normal numbers of its deviation, drawn
// in the order of the tensors from SeededRandom(seed) (two uniforms of 53 bits a pair, Box and
// Muller). The spec must have passed CheckSpec.
std::vector<float> InitialParameters(const ModelSpec& spec, std::uint64_t seed);

// The flat vector as named tensors in order, and back. Errors of the second: kInvalidArgument, a
// tensor missing, of another shape or not F32; tensors the layout does not name are ignored.
std::vector<NamedTensor> ToTensors(const ModelSpec& spec, const std::vector<float>& parameters);
StatusOr<std::vector<float>> FromTensors(const ModelSpec& spec,
                                         const std::vector<NamedTensor>& tensors);

// The values of one tensor of a layout, out of named ones. Errors: as FromTensors.
Status ReadTensor(const ParameterView& view, std::span<const NamedTensor> tensors,
                  std::span<float> values);

}  // namespace domicile::models
