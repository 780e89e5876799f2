#include "models/export/onnx.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "models/export/internal/onnx_encoder.h"
#include "models/export/internal/onnx_graph.h"
#include "models/export/internal/protobuf.h"

namespace domicile::models {

namespace {

using internal::Attribute;
using internal::OnnxGraph;
using internal::OnnxType;
using internal::ProtobufMessage;
using internal::Sizes;

// Field numbers and codes of onnx.proto3.
constexpr std::int64_t kIrVersion = 7;
constexpr std::int64_t kOperatorSet = 13;

Status Refuse(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

Status AddActivation(Activation activation, OnnxGraph& graph) {
  switch (activation) {
    case Activation::kNone:
      return OkStatus();
    case Activation::kTanh:
      graph.Node("Tanh");
      return OkStatus();
    case Activation::kRelu:
      graph.Node("Relu");
      return OkStatus();
    case Activation::kSigmoid:
      graph.Node("Sigmoid");
      return OkStatus();
    case Activation::kGelu:
    case Activation::kGeluTanh:
      break;
  }
  return Refuse("ONNX export knows the activations tanh, relu and sigmoid");
}

Status AddInput(const OnnxOptions& options, std::size_t constants, bool is_table,
                OnnxGraph& graph) {
  if (options.mean.empty() && options.deviation.empty()) {
    return OkStatus();
  }
  if (options.mean.size() != constants || options.deviation.size() != constants) {
    return Refuse("the model has " + std::to_string(constants) +
                  " inputs or channels, and its normalisation another number");
  }
  const auto number = static_cast<std::int64_t>(constants);
  const Sizes sizes = is_table ? Sizes{1, number} : Sizes{1, number, 1, 1};
  graph.Node("Sub", {graph.Constant("normalisation.mean", sizes, options.mean)});
  graph.Node("Div", {graph.Constant("normalisation.deviation", sizes, options.deviation)});
  if (is_table) {
    const std::string normalised = graph.Last();
    const float zero = 0;
    graph.Node("IsNaN");
    graph.NodeOf("Where", {graph.Last(), graph.Constant("missing", {1}, {&zero, 1}), normalised});
  }
  return OkStatus();
}

Status AddNetwork(const NetworkSpec& spec, OnnxGraph& graph) {
  if (spec.hidden.empty()) {
    const Sizes sizes = {static_cast<std::int64_t>(spec.num_inputs),
                         static_cast<std::int64_t>(spec.num_outputs)};
    graph.Node("Gemm", {graph.Parameter("weight", sizes), graph.Parameter("bias")});
    return OkStatus();
  }
  for (std::size_t i = 0; i <= spec.hidden.size(); ++i) {
    const std::string name = "layer" + std::to_string(i);
    graph.Node("Gemm", {graph.Parameter(name + ".weight"), graph.Parameter(name + ".bias")});
    if (i < spec.hidden.size()) {
      RETURN_IF_ERROR(AddActivation(spec.activation, graph));
    }
  }
  return OkStatus();
}

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Groups become the channels of an instance norm: the operator set has no group norm.
void AddGroupNorm(const ConvBlock& block, const std::string& name, const ImageSize& image,
                  OnnxGraph& graph) {
  const auto filters = static_cast<std::int64_t>(block.filters);
  const auto groups = static_cast<std::int64_t>(block.groups);
  const std::vector<float> ones(block.groups, 1);
  const std::vector<float> zeros(block.groups, 0);
  graph.Node("Reshape",
             {graph.Integers({-1, groups, filters / groups * image.height * image.width})});
  graph.Node("InstanceNormalization",
             {graph.Constant(name + ".ones", {groups}, ones),
              graph.Constant(name + ".zeros", {groups}, zeros)},
             {Attribute("epsilon", 1e-5F)});
  graph.Node("Reshape", {graph.Integers({-1, filters, image.height, image.width})});
  graph.Node("Mul", {graph.Parameter(name + ".weight", {1, filters, 1, 1})});
  graph.Node("Add", {graph.Parameter(name + ".bias", {1, filters, 1, 1})});
}

Status AddBlock(const ConvBlock& block, std::size_t i, Activation activation, bool has_statistics,
                ImageSize& image, OnnxGraph& graph) {
  const std::string number = std::to_string(i);
  const auto kernel = static_cast<std::int64_t>(block.kernel);
  const auto stride = static_cast<std::int64_t>(block.stride);
  const auto padding = static_cast<std::int64_t>(block.padding);
  const auto pool = static_cast<std::int64_t>(block.pool_window);
  graph.Node(
      "Conv",
      {graph.Parameter("conv" + number + ".weight"), graph.Parameter("conv" + number + ".bias")},
      {Attribute("kernel_shape", Sizes{kernel, kernel}),
       Attribute("strides", Sizes{stride, stride}), Attribute("pads", Sizes(4, padding))});
  image = {(image.height + 2 * padding - kernel) / stride + 1,
           (image.width + 2 * padding - kernel) / stride + 1};
  const std::string norm = "norm" + number;
  switch (block.norm) {
    case ImageNorm::kNone:
      break;
    case ImageNorm::kGroup:
      AddGroupNorm(block, norm, image, graph);
      break;
    case ImageNorm::kBatch:
      if (!has_statistics) {
        return Refuse("block " + number +
                      " is normalised by batches: its statistics describe records and stay at the "
                      "sites; give `" +
                      norm + ".running_mean` and `" + norm +
                      ".running_var`, formed from data of your own, or train with the norm "
                      "`frozen_batch` or `group`");
      }
      [[fallthrough]];
    case ImageNorm::kFrozenBatch:
      graph.Node("BatchNormalization",
                 {graph.Parameter(norm + ".weight"), graph.Parameter(norm + ".bias"),
                  graph.Parameter(norm + ".running_mean"), graph.Parameter(norm + ".running_var")},
                 {Attribute("epsilon", 1e-5F)});
      break;
  }
  RETURN_IF_ERROR(AddActivation(activation, graph));
  if (pool > 0) {
    graph.Node(
        "MaxPool", {},
        {Attribute("kernel_shape", Sizes{pool, pool}), Attribute("strides", Sizes{pool, pool})});
    image = {(image.height - pool) / pool + 1, (image.width - pool) / pool + 1};
  }
  return OkStatus();
}

Status AddConvNet(const ConvNetSpec& spec, bool has_statistics, OnnxGraph& graph) {
  ImageSize image = {static_cast<std::int64_t>(spec.height), static_cast<std::int64_t>(spec.width)};
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    RETURN_IF_ERROR(AddBlock(spec.blocks[i], i, spec.activation, has_statistics, image, graph));
  }
  graph.Node("Flatten", {}, {Attribute("axis", std::int64_t{1})});
  for (std::size_t i = 0; i <= spec.hidden.size(); ++i) {
    const std::string name = "dense" + std::to_string(i);
    graph.Node("Gemm", {graph.Parameter(name + ".weight"), graph.Parameter(name + ".bias")},
               {Attribute("transB", std::int64_t{1})});
    if (i < spec.hidden.size()) {
      RETURN_IF_ERROR(AddActivation(spec.activation, graph));
    }
  }
  return OkStatus();
}

// From the inputs to the outputs of the last layer.
Status AddModel(const ModelSpec& spec, const OnnxOptions& options, OnnxGraph& graph) {
  if (const auto* network = std::get_if<NetworkSpec>(&spec)) {
    graph.Input("input", OnnxType::kFloat, {"N", static_cast<std::int64_t>(network->num_inputs)});
    RETURN_IF_ERROR(AddInput(options, network->num_inputs, true, graph));
    return AddNetwork(*network, graph);
  }
  if (const auto* conv = std::get_if<ConvNetSpec>(&spec)) {
    graph.Input("input", OnnxType::kFloat,
                {"N", static_cast<std::int64_t>(conv->channels),
                 static_cast<std::int64_t>(conv->height), static_cast<std::int64_t>(conv->width)});
    RETURN_IF_ERROR(AddInput(options, conv->channels, false, graph));
    return AddConvNet(*conv, options.has_statistics, graph);
  }
  if (!options.mean.empty() || !options.deviation.empty()) {
    return Refuse("tokens are not normalised, and constants are given");
  }
  internal::AddEncoder(std::get<EncoderSpec>(spec), graph);
  return OkStatus();
}

// The name of the graph's output.
std::string_view AddOutput(const ModelSpec& spec, const OnnxOptions& options, OnnxGraph& graph) {
  if (const auto* encoder = std::get_if<EncoderSpec>(&spec);
      encoder != nullptr && encoder->num_outputs == 0) {
    return "embedding";
  }
  if (LossOf(spec) == LossKind::kSquaredError) {
    graph.Node("Mul", {graph.Constant("output.scale", {1}, {&options.output_scale, 1})});
    graph.Node("Add", {graph.Constant("output.offset", {1}, {&options.output_offset, 1})});
    return "prediction";
  }
  if (NumOutputs(spec) == 1) {
    graph.Node("Sigmoid");
  } else {
    graph.Node("Softmax", {}, {Attribute("axis", std::int64_t{1})});
  }
  return "probabilities";
}

}  // namespace

StatusOr<Bytes> PrintOnnx(const ModelSpec& spec, std::span<const float> parameters,
                          const OnnxOptions& options) {
  RETURN_IF_ERROR(CheckSpec(spec));
  const ParameterLayout layout = LayoutOf(spec);
  if (parameters.size() != layout.NumParameters()) {
    return Refuse("the model has " + std::to_string(layout.NumParameters()) + " parameters, not " +
                  std::to_string(parameters.size()));
  }
  constexpr std::size_t kMostParameters = (std::size_t{1} << 29U) - (std::size_t{1} << 20U);
  if (parameters.size() > kMostParameters) {
    return Refuse("the model is too large for ONNX; export it as .safetensors");
  }
  OnnxGraph graph(layout, parameters);
  RETURN_IF_ERROR(AddModel(spec, options, graph));
  const std::string_view output = AddOutput(spec, options, graph);
  ProtobufMessage set;
  set.Integer(2, kOperatorSet);
  ProtobufMessage model;
  model.Integer(1, kIrVersion);
  model.Text(2, "domicile");
  model.Message(
      7, graph.Finish(options.name, output, {"N", static_cast<std::int64_t>(NumOutputs(spec))}));
  model.Message(8, set);
  return Bytes(model.Bytes().begin(), model.Bytes().end());
}

}  // namespace domicile::models
