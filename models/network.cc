#include "models/network.h"

#include <cmath>
#include <string>
#include <utility>

#include "models/layers/activation.h"
#include "models/layers/dense.h"
#include "models/layers/sequence.h"

namespace domicile::models {
namespace {

constexpr std::uint64_t kMaxParameters = std::uint64_t{1} << 31U;

std::vector<std::size_t> Widths(const NetworkSpec& spec) {
  std::vector<std::size_t> widths = {spec.num_inputs};
  widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(spec.num_outputs);
  return widths;
}

bool IsGelu(Activation activation) {
  return activation == Activation::kGelu || activation == Activation::kGeluTanh;
}

}  // namespace

Status CheckSpec(const NetworkSpec& spec) {
  if (spec.num_inputs == 0 || spec.num_outputs == 0) {
    return Error(StatusCode::kInvalidArgument, "a network needs at least one input and one output");
  }
  if (!spec.hidden.empty() && spec.activation == Activation::kNone) {
    return Error(StatusCode::kInvalidArgument, "hidden layers need an activation");
  }
  std::uint64_t total = 0;
  const std::vector<std::size_t> widths = Widths(spec);
  for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    const std::uint64_t ins = widths[layer];
    const std::uint64_t outs = widths[layer + 1];
    if (outs == 0) {
      return Error(StatusCode::kInvalidArgument, "a hidden layer must have at least one unit");
    }
    if (ins > kMaxParameters || outs > kMaxParameters / (ins + 1)) {
      return Error(StatusCode::kInvalidArgument, "a network may have at most 2^31 parameters");
    }
    total += (ins + 1) * outs;
    if (total > kMaxParameters) {
      return Error(StatusCode::kInvalidArgument, "a network may have at most 2^31 parameters");
    }
  }
  return OkStatus();
}

std::unique_ptr<Layer> MakeLayers(const NetworkSpec& spec) {
  const std::vector<std::size_t> widths = Widths(spec);
  const bool flat = spec.hidden.empty();
  Layers layers;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const Activation activation = i + 2 < widths.size() ? spec.activation : Activation::kNone;
    layers.push_back(
        MakeDense({.name = flat ? "" : "layer" + std::to_string(i),
                   .inputs = widths[i],
                   .outputs = widths[i + 1],
                   .activation = IsGelu(activation) ? Activation::kNone : activation,
                   .layout = WeightLayout::kInOut,
                   .vector_weight = flat && spec.num_outputs == 1,
                   .initial_deviation = flat ? 0 : 1 / std::sqrt(static_cast<double>(widths[i]))}));
    if (IsGelu(activation)) {
      layers.push_back(MakeActivation(activation));
    }
  }
  return MakeSequence(std::move(layers));
}

}  // namespace domicile::models
