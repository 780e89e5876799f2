#include "models/export/onnx.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "models/export/internal/protobuf.h"

namespace domicile::models {

namespace {

using internal::ProtobufMessage;

// Field numbers and codes of onnx.proto3.
constexpr std::int64_t kIrVersion = 7;
constexpr std::int64_t kOperatorSet = 13;
constexpr std::int64_t kFloat = 1;
constexpr std::int64_t kInt64 = 7;
constexpr std::int64_t kAttributeFloat = 1;
constexpr std::int64_t kAttributeInt = 2;
constexpr std::int64_t kAttributeInts = 7;

using Sizes = std::vector<std::int64_t>;

Status Refuse(std::string what) { return Error(StatusCode::kInvalidArgument, std::move(what)); }

ProtobufMessage Attribute(std::string_view name, const Sizes& values) {
  ProtobufMessage attribute;
  attribute.Text(1, name);
  for (const std::int64_t value : values) {
    attribute.Integer(8, value);
  }
  attribute.Integer(20, kAttributeInts);
  return attribute;
}

ProtobufMessage Attribute(std::string_view name, std::int64_t value) {
  ProtobufMessage attribute;
  attribute.Text(1, name);
  attribute.Integer(3, value);
  attribute.Integer(20, kAttributeInt);
  return attribute;
}

ProtobufMessage Attribute(std::string_view name, float value) {
  ProtobufMessage attribute;
  attribute.Text(1, name);
  attribute.Float(2, value);
  attribute.Integer(20, kAttributeFloat);
  return attribute;
}

// An input or output: its first size is the number of examples, which is open.
ProtobufMessage ValueInfo(std::string_view name, const Sizes& sizes) {
  ProtobufMessage shape;
  ProtobufMessage open;
  open.Text(2, "N");
  shape.Message(1, open);
  for (const std::int64_t size : sizes) {
    ProtobufMessage dimension;
    dimension.Integer(1, size);
    shape.Message(1, dimension);
  }
  ProtobufMessage tensor;
  tensor.Integer(1, kFloat);
  tensor.Message(2, shape);
  ProtobufMessage type;
  type.Message(1, tensor);
  ProtobufMessage info;
  info.Text(1, name);
  info.Message(2, type);
  return info;
}

// A graph that grows at its end: each node takes what the one before it made.
class Graph {
 public:
  Graph(const ParameterLayout& layout, std::span<const float> parameters, std::string input)
      : layout_(layout), parameters_(parameters), last_(std::move(input)) {}

  // `constants` are initializers, the node's inputs after the first.
  void Node(std::string_view type, const std::vector<std::string>& constants = {},
            std::initializer_list<ProtobufMessage> attributes = {}) {
    std::vector<std::string> inputs = {last_};
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    NodeOf(type, inputs, attributes);
  }
  void NodeOf(std::string_view type, const std::vector<std::string>& inputs,
              std::initializer_list<ProtobufMessage> attributes = {}) {
    last_ = "value" + std::to_string(count_++);
    ProtobufMessage node;
    for (const std::string& input : inputs) {
      node.Text(1, input);
    }
    node.Text(2, last_);
    node.Text(4, type);
    for (const ProtobufMessage& attribute : attributes) {
      node.Message(5, attribute);
    }
    nodes_.Message(1, node);
  }
  const std::string& Last() const { return last_; }

  // A tensor of the model, by its own name; `sizes`: in place of its shape.
  std::string Parameter(const std::string& name, Sizes sizes = {}) {
    const auto views = layout_.Views();
    const auto view =
        std::find_if(views.begin(), views.end(), [&](const auto& v) { return v.name == name; });
    DOMICILE_CHECK(view != views.end());  // the names are those of MakeLayers
    if (sizes.empty()) {
      sizes.assign(view->shape.begin(), view->shape.end());
    }
    return Constant(name, std::move(sizes), parameters_.subspan(view->offset, view->size));
  }
  std::string Constant(const std::string& name, Sizes sizes, std::span<const float> values) {
    return Initializer(name, sizes, kFloat, values.data(), values.size_bytes());
  }
  std::string Integers(const Sizes& values) {
    return Initializer("sizes" + std::to_string(count_++),
                       {static_cast<std::int64_t>(values.size())}, kInt64, values.data(),
                       values.size() * sizeof(std::int64_t));
  }

  // The message, ended by `name` as its output.
  ProtobufMessage Finish(const std::string& model, const Sizes& input, std::string_view name,
                         std::int64_t outputs) {
    ProtobufMessage identity;
    identity.Text(1, last_);
    identity.Text(2, name);
    identity.Text(4, "Identity");
    nodes_.Message(1, identity);
    nodes_.Text(2, model);
    nodes_.Message(11, ValueInfo("input", input));
    nodes_.Message(12, ValueInfo(name, {outputs}));
    return nodes_;
  }

 private:
  std::string Initializer(const std::string& name, const Sizes& sizes, std::int64_t type,
                          const void* data, std::size_t bytes) {
    ProtobufMessage tensor;
    for (const std::int64_t size : sizes) {
      tensor.Integer(1, size);
    }
    tensor.Integer(2, type);
    tensor.Text(8, name);
    tensor.Text(9, {static_cast<const char*>(data), bytes});
    nodes_.Message(5, tensor);
    return name;
  }

  const ParameterLayout& layout_;
  std::span<const float> parameters_;
  ProtobufMessage nodes_;
  std::string last_;
  std::size_t count_ = 0;
};

Status AddActivation(Activation activation, Graph& graph) {
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

Status AddInput(const OnnxOptions& options, std::size_t constants, bool is_table, Graph& graph) {
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

Status AddNetwork(const NetworkSpec& spec, Graph& graph) {
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
                  Graph& graph) {
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

Status AddBlock(const ConvBlock& block, std::size_t i, Activation activation, ImageSize& image,
                Graph& graph) {
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
      return Refuse("block " + number +
                    " is normalised by batches: its statistics describe records and stay at the "
                    "sites, so the model cannot be used without one");
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

Status AddConvNet(const ConvNetSpec& spec, Graph& graph) {
  ImageSize image = {static_cast<std::int64_t>(spec.height), static_cast<std::int64_t>(spec.width)};
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    RETURN_IF_ERROR(AddBlock(spec.blocks[i], i, spec.activation, image, graph));
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

// The name of the graph's output.
std::string_view AddOutput(const ModelSpec& spec, const OnnxOptions& options, Graph& graph) {
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
  Graph graph(layout, parameters, "input");
  Sizes input;
  if (const auto* network = std::get_if<NetworkSpec>(&spec)) {
    input = {static_cast<std::int64_t>(network->num_inputs)};
    RETURN_IF_ERROR(AddInput(options, network->num_inputs, true, graph));
    RETURN_IF_ERROR(AddNetwork(*network, graph));
  } else if (const auto* conv = std::get_if<ConvNetSpec>(&spec)) {
    input = {static_cast<std::int64_t>(conv->channels), static_cast<std::int64_t>(conv->height),
             static_cast<std::int64_t>(conv->width)};
    RETURN_IF_ERROR(AddInput(options, conv->channels, false, graph));
    RETURN_IF_ERROR(AddConvNet(*conv, graph));
  } else {
    return Refuse(
        "encoders are not exported to ONNX: their .safetensors has BERT's own names, "
        "which other programs load");
  }
  const std::string_view output = AddOutput(spec, options, graph);
  ProtobufMessage set;
  set.Integer(2, kOperatorSet);
  ProtobufMessage model;
  model.Integer(1, kIrVersion);
  model.Text(2, "domicile");
  model.Message(
      7, graph.Finish(options.name, input, output, static_cast<std::int64_t>(NumOutputs(spec))));
  model.Message(8, set);
  return Bytes(model.Bytes().begin(), model.Bytes().end());
}

}  // namespace domicile::models
