#include "models/initial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "base/random.h"

namespace domicile::models {
namespace {

// Uniform in (0, 1): 53 random bits, and never 0, whose logarithm there is not.
double Uniform(Random& random) {
  const std::uint64_t bits = random.Next64() >> 11U;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

// Adds standard normal numbers times `deviation` to `out` (Box and Muller 1958).
void AddNormal(Random& random, double deviation, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(Uniform(random)));
    const double angle = 2 * std::numbers::pi * Uniform(random);
    out[i] += static_cast<float>(deviation * radius * std::cos(angle));
    if (i + 1 < out.size()) {
      out[i + 1] += static_cast<float>(deviation * radius * std::sin(angle));
    }
  }
}

}  // namespace

std::vector<float> InitialParameters(const ModelSpec& spec, std::uint64_t seed) {
  const ParameterLayout layout = LayoutOf(spec);
  std::vector<float> parameters(layout.NumParameters());
  SeededRandom random(seed);
  for (const ParameterView& view : layout.Views()) {
    const std::span<float> values = std::span(parameters).subspan(view.offset, view.size);
    std::fill(values.begin(), values.end(), view.initial_value);
    if (view.initial_deviation > 0) {
      AddNormal(random, view.initial_deviation, values);
    }
  }
  return parameters;
}

std::vector<NamedTensor> ToTensors(const ModelSpec& spec, const std::vector<float>& parameters) {
  const ParameterLayout layout = LayoutOf(spec);
  DOMICILE_CHECK(parameters.size() == layout.NumParameters());
  std::vector<NamedTensor> tensors;
  for (const ParameterView& view : layout.Views()) {
    const auto values = std::span(parameters).subspan(view.offset, view.size);
    tensors.push_back(
        {.name = view.name, .shape = view.shape, .values = {values.begin(), values.end()}});
  }
  return tensors;
}

Status ReadTensor(const ParameterView& view, std::span<const NamedTensor> tensors,
                  std::span<float> values) {
  const NamedTensor* const tensor = FindTensor(tensors, view.name);
  if (tensor == nullptr) {
    return Error(StatusCode::kInvalidArgument, "the model has no tensor `" + view.name + "`");
  }
  if (tensor->type != DataType::kFloat32 || tensor->shape != view.shape ||
      tensor->values.size() != view.size) {
    return Error(StatusCode::kInvalidArgument,
                 "tensor `" + view.name + "` does not have the type and shape of the model");
  }
  std::copy(tensor->values.begin(), tensor->values.end(), values.begin());
  return OkStatus();
}

StatusOr<std::vector<float>> FromTensors(const ModelSpec& spec,
                                         const std::vector<NamedTensor>& tensors) {
  const ParameterLayout layout = LayoutOf(spec);
  std::vector<float> parameters(layout.NumParameters());
  for (const ParameterView& view : layout.Views()) {
    RETURN_IF_ERROR(
        ReadTensor(view, tensors, std::span(parameters).subspan(view.offset, view.size)));
  }
  return parameters;
}

}  // namespace domicile::models
