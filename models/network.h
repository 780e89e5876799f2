// Networks of dense layers over one flat float32 vector of parameters: logistic regression (no
// hidden layer) and multilayer perceptrons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/layers/device.h"
#include "models/tensor.h"

namespace domicile::models {

struct NetworkSpec {
  std::size_t num_inputs = 0;
  std::vector<std::size_t> hidden;  // widths, input side first; empty: logistic regression
  Activation activation = Activation::kNone;  // of the hidden layers; kNone only without any
  std::size_t num_outputs = 0;  // 1: sigmoid and binary cross-entropy; else softmax over classes

  std::size_t NumClasses() const { return num_outputs == 1 ? 2 : num_outputs; }
};

// One named tensor inside the flat vector.
struct ParameterView {
  std::string name;                  // as contracts::Plan::Tensors() names and orders them
  std::vector<std::uint64_t> shape;  // weight [in, out], or [in] where there is no hidden layer and
                                     // one output; bias [out]
  std::size_t offset = 0;            // in elements
  std::size_t size = 0;
  bool is_bias = false;
};

// "weight", "bias" without hidden layers; else "layer0.weight", "layer0.bias", ...
std::vector<ParameterView> ParameterLayout(const NetworkSpec& spec);
std::size_t NumParameters(const NetworkSpec& spec);

// Errors: kInvalidArgument: no inputs or outputs, a hidden width of 0, more than 2^31 parameters,
// or hidden layers without an activation.
Status CheckSpec(const NetworkSpec& spec);

// Forward and backward over a borrowed device; keeps the buffers of the largest batch seen.
// One thread at a time.
class Network {
 public:
  // The spec must have passed CheckSpec; the device must outlive the network.
  Network(NetworkSpec spec, Device& device);

  const NetworkSpec& spec() const { return spec_; }
  std::size_t NumParameters() const { return num_parameters_; }

  // Logits [rows, num_outputs] of x [rows, num_inputs]; valid until the next call.
  ConstMatrix Forward(std::span<const float> parameters, ConstMatrix x);

  // The sum of the losses over the rows, without L2.
  double Loss(std::span<const float> parameters, ConstMatrix x,
              std::span<const std::uint32_t> labels);

  // Returns the sum of the losses over the rows, and
  //   gradient = (1 / divisor) * d(sum of losses) / d(parameters), overwritten.
  // With `divisor` the rows of the whole global batch, the gradients of its parts add up to the
  // gradient of the mean. Zero rows give zeros. Labels must be below NumClasses().
  double LossAndGradient(std::span<const float> parameters, ConstMatrix x,
                         std::span<const std::uint32_t> labels, double divisor,
                         std::span<float> gradient);

  // gradient += l2 * weights; biases are left alone.
  void AddL2(double l2, std::span<const float> parameters, std::span<float> gradient);

 private:
  struct Layer {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    std::size_t weight_offset = 0;
    std::size_t bias_offset = 0;
    Activation activation = Activation::kNone;
    Tensor output;    // [rows, outputs], after the activation
    Tensor gradient;  // [rows, outputs]
  };

  NetworkSpec spec_;
  Device* device_;
  std::size_t num_parameters_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace domicile::models
