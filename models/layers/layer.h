// One layer of a model: values in, values out, and the gradients of both. The parameters of all
// layers lie in one flat vector; a layer knows where its own are. Layers keep the buffers of the
// largest batch seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/layers/device.h"
#include "models/layers/parameter.h"
#include "models/tensor.h"

namespace domicile::models {

// Sequences of tokens, borrowed: all of [sequences * length].
struct TokenView {
  std::span<const std::uint32_t> ids;
  std::span<const std::uint32_t> types;  // empty: all 0
  std::span<const std::uint8_t> mask;    // 0: padding; empty: no padding
  std::size_t length = 0;                // of each sequence, padding included

  std::size_t NumSequences() const { return length == 0 ? 0 : ids.size() / length; }
  // The sequences [first, first + count); they must exist.
  TokenView Rows(std::size_t first, std::size_t count) const;
};

// Told on a way back, with numbers that never rise: the entry of that number and all after it are
// final in the gradient (for a device that queues its work, once what it has been asked for is
// done).
using FinalFrom = std::function<void(std::size_t entry)>;

// What all layers share in one pass.
struct Pass {
  std::span<const float> parameters{};    // of the whole model
  bool training = false;                  // dropout drops, batch norm uses the batch
  std::uint64_t dropout_key = 0;          // of this step, the same on all replicas
  std::uint64_t first_example = 0;        // where this slice begins in the global batch
  std::size_t num_examples = 0;           // of this slice
  double divisor = 1;                     // examples of the global batch
  TokenView tokens{};                     // empty for models of plain numbers
  const FinalFrom* final_from = nullptr;  // null: nobody wants to know
};

// One thread at a time.
class Layer {
 public:
  virtual ~Layer() = default;

  // Adds the layer's tensors. Called once, before everything else.
  virtual void Declare(ParameterLayout& layout);
  // Takes note of which of its tensors are trained. Called after Declare, and again when it
  // changes.
  virtual void Bind(const ParameterLayout& layout);
  // Whether any of its tensors is trained.
  virtual bool IsTrained() const { return false; }

  // Valid until the next call.
  virtual ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) = 0;

  // Given dy, the gradient of the output of the last Forward (same pass, whose x must still hold
  // its values), writes the gradients of the trained tensors to their places in `gradient`, and
  // returns that of x unless it is not wanted. May write over dy. Valid until the next call.
  // A layer of layers goes back from the last one declared to the first, each with all that it
  // adds to the gradient; who runs several in a row tells pass.final_from.
  virtual Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                          std::span<float> gradient) = 0;

  // After the training passes over a global batch of `divisor` examples, whose gradients have been
  // added up over slices and replicas: updates the statistics in `parameters`.
  virtual void UpdateStatistics(Device& device, double divisor, std::span<const float> gradient,
                                std::span<float> parameters);

  // Multiplications and additions of the matrix products of one example in one step, forward and
  // backward. `rows`: of the layer's input for one example (its tokens); becomes that of its
  // output.
  virtual double StepFlops(bool wants_dx, std::size_t& rows) const;
};

// A tensor of a layer: where it lies, and whether it is trained.
class Parameter {
 public:
  // Adds `view` to the layout.
  void Declare(ParameterLayout& layout, ParameterView view);
  void Bind(const ParameterLayout& layout);

  bool IsTrained() const { return trainable_; }
  std::size_t size() const { return size_; }
  std::span<const float> In(std::span<const float> flat) const {
    return flat.subspan(offset_, size_);
  }
  std::span<float> In(std::span<float> flat) const { return flat.subspan(offset_, size_); }

 private:
  std::size_t index_ = 0;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
  bool trainable_ = false;
};

// A key of its own for dropout layer number `layer` in the step of that key.
std::uint64_t MixKey(std::uint64_t key, std::uint64_t layer);

// The mask of a layer over an operand of `elements` per example.
DropoutMask MaskOf(const Pass& pass, std::uint64_t layer, float rate, std::size_t elements);

}  // namespace domicile::models
