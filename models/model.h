// A model of any kind: a description, and what computes its loss and gradients on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "models/conv_net.h"
#include "models/encoder.h"
#include "models/layers/layer.h"
#include "models/network.h"
#include "models/tensor.h"

namespace domicile::models {

using ModelSpec = std::variant<NetworkSpec, ConvNetSpec, EncoderSpec>;

// Errors: kInvalidArgument, as that of the kind.
Status CheckSpec(const ModelSpec& spec);
// The named tensors in order. The spec must have passed CheckSpec.
ParameterLayout LayoutOf(const ModelSpec& spec);
// Of one example; the tokens of an encoder count as none.
std::size_t NumInputs(const ModelSpec& spec);
std::size_t NumOutputs(const ModelSpec& spec);
LossKind LossOf(const ModelSpec& spec);

// One batch, borrowed for the call: rows of numbers, or sequences of tokens for an encoder; and for
// each a label, or a row of targets where the loss is kSquaredError.
struct BatchView {
  ConstMatrix inputs{};
  std::span<const std::uint32_t> labels{};
  TokenView tokens{};
  ConstMatrix targets{};

  std::size_t NumExamples() const {
    return tokens.length > 0 ? tokens.NumSequences() : inputs.rows;
  }
  // The examples [first, first + count); they must exist.
  BatchView Rows(std::size_t first, std::size_t count) const;
};

// Errors: kInvalidArgument: no example, another number of labels, targets or inputs, a label, token
// or type beyond its range, a sequence longer than the positions.
Status CheckBatch(const ModelSpec& spec, const BatchView& batch);

// Where a slice stands in a step.
struct StepPlace {
  double divisor = 1;               // the examples of the whole global batch
  std::uint64_t first_example = 0;  // of the slice in it
  std::uint64_t dropout_key = 0;    // of the step, the same on all replicas
  double loss_scale = 1;            // the loss is multiplied by it before the way back
  // Told as the gradient becomes final, at last of entry 0; null: nobody wants to know. Frozen
  // tensors count as final.
  const FinalFrom* final_from = nullptr;
};

// Keeps the buffers of the largest batch seen, in the device's memory. Parameters and gradients may
// lie there (at best) or in host memory, batches lie in host memory. One thread at a time.
class Model {
 public:
  // The spec must have passed CheckSpec; the device must outlive the model.
  Model(ModelSpec spec, Device& device);

  const ModelSpec& spec() const { return spec_; }
  const ParameterLayout& layout() const { return layout_; }
  std::size_t NumParameters() const { return layout_.NumParameters(); }
  // Multiplications and additions of the matrix products of one example in one step; `tokens`: of
  // its sequence, or 1.
  double StepFlops(std::size_t tokens) const { return layers_->StepFlops(false, tokens); }
  std::span<const ParameterRange> TrainedRanges() const { return trained_; }

  // Stops training the tensors that match a pattern; returns how many it stopped.
  std::size_t Freeze(std::span<const std::string> patterns);

  // Outputs [examples, outputs] in the device's memory, as in evaluation; valid until the next
  // call. Labels are not read.
  ConstMatrix Forward(std::span<const float> parameters, const BatchView& batch);

  // The sum of the losses over the batch, without L2, as in evaluation.
  double Loss(std::span<const float> parameters, const BatchView& batch);

  // Returns the sum of the losses over the slice, and writes
  //   (loss_scale / divisor) * d(sum of losses) / d(parameters)
  // to the trained tensors of `gradient`; the gradients of slices add up to that of the mean.
  // Frozen tensors are left alone. A slice may be empty: its gradient is zero. The batch must have
  // passed CheckBatch.
  double LossAndGradient(std::span<const float> parameters, const BatchView& slice,
                         const StepPlace& place, std::span<float> gradient);

  // gradient += l2 * weights, for trained tensors of the role kWeight.
  void AddL2(double l2, std::span<const float> parameters, std::span<float> gradient);

  // Brings running statistics up to date, once a step, from the added up gradients.
  void UpdateStatistics(double divisor, std::span<const float> gradient,
                        std::span<float> parameters);

 private:
  double LossOfOutputs(ConstMatrix outputs, const BatchView& batch, float scale, Matrix gradient);
  ConstMatrix RunForward(Pass& pass, const BatchView& batch);

  ModelSpec spec_;
  Device* device_;
  std::unique_ptr<Layer> layers_;
  ParameterLayout layout_;
  std::vector<ParameterRange> trained_;  // of layout_
  Tensor output_gradient_;
  Tensor inputs_;  // of the batch, where the device does not compute in host memory
};

}  // namespace domicile::models
