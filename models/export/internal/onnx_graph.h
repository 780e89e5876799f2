// An ONNX graph under construction (operator set 13): nodes, constants, inputs and outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/export/internal/protobuf.h"
#include "models/layers/parameter.h"

namespace domicile::models::internal {

using Sizes = std::vector<std::int64_t>;

// Attributes of a node.
ProtobufMessage Attribute(std::string_view name, const Sizes& values);
ProtobufMessage Attribute(std::string_view name, std::int64_t value);
ProtobufMessage Attribute(std::string_view name, float value);

// Codes of types, as onnx.proto3 has them.
enum class OnnxType : std::int64_t { kFloat = 1, kInt64 = 7, kBool = 9 };

// A size, or the name of one that is open until the graph is run: "N".
using Dimension = std::variant<std::int64_t, std::string>;

// Grows at its end: a node takes what the one before it made, unless told otherwise. Borrows the
// parameters. One thread at a time.
class OnnxGraph {
 public:
  OnnxGraph(const ParameterLayout& layout, std::span<const float> parameters)
      : layout_(layout), parameters_(parameters) {}

  // The first input is also the last value made.
  void Input(std::string_view name, OnnxType type, const std::vector<Dimension>& sizes);

  // The last value is the node's first input, `more` the others. Returns the name of what it makes.
  std::string Node(std::string_view type, const std::vector<std::string>& more = {},
                   std::initializer_list<ProtobufMessage> attributes = {});
  std::string NodeOf(std::string_view type, const std::vector<std::string>& inputs,
                     std::initializer_list<ProtobufMessage> attributes = {});
  const std::string& Last() const { return last_; }

  // The values of a tensor of the model, which must have it.
  std::span<const float> Values(std::string_view name) const;
  // A tensor of the model as a constant, by its own name; `sizes`: in place of its shape.
  std::string Parameter(const std::string& name, Sizes sizes = {});
  std::string Constant(const std::string& name, const Sizes& sizes, std::span<const float> values);
  // One number, the same constant each time it is asked for.
  std::string Number(std::string_view name, float value);
  // A list of integers; equal lists are one constant.
  std::string Integers(const Sizes& values);

  // The message, ended by the last value as its output `name`.
  ProtobufMessage Finish(std::string_view model, std::string_view name,
                         const std::vector<Dimension>& sizes);

 private:
  std::string Initializer(const std::string& name, const Sizes& sizes, OnnxType type,
                          const void* data, std::size_t bytes);
  bool IsMade(const std::string& constant);

  const ParameterLayout& layout_;
  std::span<const float> parameters_;
  ProtobufMessage nodes_;
  ProtobufMessage inputs_;
  std::vector<std::string> made_;  // constants that are shared
  std::string last_;
  std::size_t count_ = 0;
};

}  // namespace domicile::models::internal
