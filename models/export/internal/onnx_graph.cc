#include "models/export/internal/onnx_graph.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace domicile::models::internal {
namespace {

// Field numbers and codes of onnx.proto3.
constexpr std::int64_t kAttributeFloat = 1;
constexpr std::int64_t kAttributeInt = 2;
constexpr std::int64_t kAttributeInts = 7;
constexpr std::uint32_t kNodes = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kInitializers = 5;
constexpr std::uint32_t kInputs = 11;
constexpr std::uint32_t kOutputs = 12;

ProtobufMessage ValueInfo(std::string_view name, OnnxType type,
                          const std::vector<Dimension>& sizes) {
  ProtobufMessage shape;
  for (const Dimension& size : sizes) {
    ProtobufMessage dimension;
    if (const auto* const fixed = std::get_if<std::int64_t>(&size)) {
      dimension.Integer(1, *fixed);
    } else {
      dimension.Text(2, std::get<std::string>(size));
    }
    shape.Message(1, dimension);
  }
  ProtobufMessage tensor;
  tensor.Integer(1, static_cast<std::int64_t>(type));
  tensor.Message(2, shape);
  ProtobufMessage value;
  value.Message(1, tensor);
  ProtobufMessage info;
  info.Text(1, name);
  info.Message(2, value);
  return info;
}

}  // namespace

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

void OnnxGraph::Input(std::string_view name, OnnxType type, const std::vector<Dimension>& sizes) {
  inputs_.Message(kInputs, ValueInfo(name, type, sizes));
  if (last_.empty()) {
    last_ = name;
  }
}

std::string OnnxGraph::Node(std::string_view type, const std::vector<std::string>& more,
                            std::initializer_list<ProtobufMessage> attributes) {
  std::vector<std::string> inputs = {last_};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return NodeOf(type, inputs, attributes);
}

std::string OnnxGraph::NodeOf(std::string_view type, const std::vector<std::string>& inputs,
                              std::initializer_list<ProtobufMessage> attributes) {
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
  nodes_.Message(kNodes, node);
  return last_;
}

std::span<const float> OnnxGraph::Values(std::string_view name) const {
  const auto views = layout_.Views();
  const auto view =
      std::find_if(views.begin(), views.end(), [&](const auto& each) { return each.name == name; });
  DOMICILE_CHECK(view != views.end());  // the names are those of MakeLayers
  return parameters_.subspan(view->offset, view->size);
}

std::string OnnxGraph::Parameter(const std::string& name, Sizes sizes) {
  const std::span<const float> values = Values(name);
  if (sizes.empty()) {
    const auto views = layout_.Views();
    const auto view = std::find_if(views.begin(), views.end(),
                                   [&](const auto& each) { return each.name == name; });
    sizes.assign(view->shape.begin(), view->shape.end());
  }
  return Constant(name, sizes, values);
}

std::string OnnxGraph::Constant(const std::string& name, const Sizes& sizes,
                                std::span<const float> values) {
  return Initializer(name, sizes, OnnxType::kFloat, values.data(), values.size_bytes());
}

std::string OnnxGraph::Number(std::string_view name, float value) {
  std::string constant(name);
  return IsMade(constant) ? constant : Constant(constant, {}, {&value, 1});
}

std::string OnnxGraph::Integers(const Sizes& values) {
  std::string name = "sizes";
  for (const std::int64_t value : values) {
    name += "_" + std::to_string(value);
  }
  return IsMade(name)
             ? name
             : Initializer(name, {static_cast<std::int64_t>(values.size())}, OnnxType::kInt64,
                           values.data(), values.size() * sizeof(std::int64_t));
}

ProtobufMessage OnnxGraph::Finish(std::string_view model, std::string_view name,
                                  const std::vector<Dimension>& sizes) {
  ProtobufMessage identity;
  identity.Text(1, last_);
  identity.Text(2, name);
  identity.Text(4, "Identity");
  nodes_.Message(kNodes, identity);
  nodes_.Text(kName, model);
  nodes_.Append(inputs_);
  nodes_.Message(kOutputs, ValueInfo(name, OnnxType::kFloat, sizes));
  return std::move(nodes_);
}

std::string OnnxGraph::Initializer(const std::string& name, const Sizes& sizes, OnnxType type,
                                   const void* data, std::size_t bytes) {
  ProtobufMessage tensor;
  for (const std::int64_t size : sizes) {
    tensor.Integer(1, size);
  }
  tensor.Integer(2, static_cast<std::int64_t>(type));
  tensor.Text(8, name);
  tensor.Text(9, {static_cast<const char*>(data), bytes});
  nodes_.Message(kInitializers, tensor);
  return name;
}

bool OnnxGraph::IsMade(const std::string& constant) {
  if (std::find(made_.begin(), made_.end(), constant) != made_.end()) {
    return true;
  }
  made_.push_back(constant);
  return false;
}

}  // namespace domicile::models::internal
