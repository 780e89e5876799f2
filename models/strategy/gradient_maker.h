// A device with a model on it that turns parameters and examples into a gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "models/model.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// One thread at a time.
class GradientMaker {
 public:
  GradientMaker(const TrainingSpec& training, std::unique_ptr<Device> device);

  // Computes in the precision of the training spec, if it is a CPU.
  Device& device() { return *device_; }
  Model& model() { return model_; }
  // In the memory of the device.
  std::span<float> Gradient() { return gradient_.Values(); }

  double Loss(std::span<const float> parameters, const BatchView& slice) {
    return model_.Loss(parameters, slice);
  }

  // Gradient() = the slice's part of loss_scale times the gradient of the mean loss over the
  // `divisor` examples of the global batch, one micro batch at a time: each weighs as much as it
  // has examples. `place` is that of the slice; its final_from hears of Gradient(), in the last
  // micro batch alone. Returns the slice's sum of losses.
  double Compute(std::span<const float> parameters, const BatchView& slice, StepPlace place);

  // Of the gradients.
  std::uint64_t StateBytes() const;

 private:
  std::size_t micro_batch_;
  std::unique_ptr<Device> device_;
  Model model_;
  Tensor gradient_;
  Tensor micro_gradient_;  // of one micro batch, where there are several
};

}  // namespace domicile::models
