#include "models/network.h"

#include <utility>

namespace domicile::models {
namespace {

constexpr std::uint64_t kMaxParameters = std::uint64_t{1} << 31U;

std::vector<std::size_t> Widths(const NetworkSpec& spec) {
  std::vector<std::size_t> widths = {spec.num_inputs};
  widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(spec.num_outputs);
  return widths;
}

}  // namespace

std::vector<ParameterView> ParameterLayout(const NetworkSpec& spec) {
  const std::vector<std::size_t> widths = Widths(spec);
  std::vector<ParameterView> layout;
  std::size_t offset = 0;
  for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    const std::size_t ins = widths[layer];
    const std::size_t outs = widths[layer + 1];
    const std::string prefix = spec.hidden.empty() ? "" : "layer" + std::to_string(layer) + ".";
    std::vector<std::uint64_t> shape = {ins, outs};
    if (spec.hidden.empty() && outs == 1) {
      shape = {ins};
    }
    layout.push_back({prefix + "weight", std::move(shape), offset, ins * outs, false});
    offset += ins * outs;
    layout.push_back({prefix + "bias", {outs}, offset, outs, true});
    offset += outs;
  }
  return layout;
}

std::size_t NumParameters(const NetworkSpec& spec) {
  const ParameterView last = ParameterLayout(spec).back();
  return last.offset + last.size;
}

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

Network::Network(NetworkSpec spec, Device& device) : spec_(std::move(spec)), device_(&device) {
  DOMICILE_CHECK(CheckSpec(spec_).ok());
  const std::vector<std::size_t> widths = Widths(spec_);
  std::size_t offset = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Layer layer;
    layer.inputs = widths[i];
    layer.outputs = widths[i + 1];
    layer.weight_offset = offset;
    layer.bias_offset = offset + layer.inputs * layer.outputs;
    layer.activation = i + 2 < widths.size() ? spec_.activation : Activation::kNone;
    offset = layer.bias_offset + layer.outputs;
    layers_.push_back(std::move(layer));
  }
  num_parameters_ = offset;
}

ConstMatrix Network::Forward(std::span<const float> parameters, ConstMatrix x) {
  DOMICILE_CHECK(parameters.size() == num_parameters_ && x.columns == spec_.num_inputs);
  for (Layer& layer : layers_) {
    layer.output.ResizeMatrix(x.rows, layer.outputs);
    device_->Dense(x, {parameters.data() + layer.weight_offset, layer.inputs, layer.outputs},
                   parameters.subspan(layer.bias_offset, layer.outputs), layer.activation,
                   layer.output.AsMatrix());
    x = layer.output.AsMatrix();
  }
  return x;
}

double Network::Loss(std::span<const float> parameters, ConstMatrix x,
                     std::span<const std::uint32_t> labels) {
  const ConstMatrix logits = Forward(parameters, x);
  return spec_.num_outputs == 1 ? device_->BinaryCrossEntropy(logits, labels, 0, {})
                                : device_->SoftmaxCrossEntropy(logits, labels, 0, {});
}

double Network::LossAndGradient(std::span<const float> parameters, ConstMatrix x,
                                std::span<const std::uint32_t> labels, double divisor,
                                std::span<float> gradient) {
  DOMICILE_CHECK(gradient.size() == num_parameters_);
  const ConstMatrix logits = Forward(parameters, x);
  Layer& last = layers_.back();
  last.gradient.ResizeMatrix(x.rows, last.outputs);
  const float scale = static_cast<float>(1.0 / divisor);
  const double loss =
      spec_.num_outputs == 1
          ? device_->BinaryCrossEntropy(logits, labels, scale, last.gradient.AsMatrix())
          : device_->SoftmaxCrossEntropy(logits, labels, scale, last.gradient.AsMatrix());

  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    const ConstMatrix inputs = i == 0 ? x : std::as_const(layers_[i - 1].output).AsMatrix();
    const ConstMatrix dy = std::as_const(layer.gradient).AsMatrix();
    device_->DenseWeightGradient(
        inputs, dy, {gradient.data() + layer.weight_offset, layer.inputs, layer.outputs});
    device_->DenseBiasGradient(dy, gradient.subspan(layer.bias_offset, layer.outputs));
    if (i > 0) {
      Layer& below = layers_[i - 1];
      below.gradient.ResizeMatrix(x.rows, below.outputs);
      device_->DenseInputGradient(
          dy, {parameters.data() + layer.weight_offset, layer.inputs, layer.outputs},
          below.gradient.AsMatrix());
      device_->ActivationGradient(below.activation, std::as_const(below.output).AsMatrix(),
                                  below.gradient.AsMatrix());
    }
  }
  return loss;
}

void Network::AddL2(double l2, std::span<const float> parameters, std::span<float> gradient) {
  if (l2 == 0) {
    return;
  }
  for (const Layer& layer : layers_) {
    const std::size_t size = layer.inputs * layer.outputs;
    device_->AddScaled(static_cast<float>(l2), parameters.subspan(layer.weight_offset, size),
                       gradient.subspan(layer.weight_offset, size));
  }
}

}  // namespace domicile::models
