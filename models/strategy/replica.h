// One copy of a model with everything a step needs: what a strategy has one or several of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "models/model.h"
#include "models/optimizer.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// One thread at a time.
class Replica {
 public:
  // `initial` must have the model's size.
  Replica(const TrainingSpec& training, std::unique_ptr<Device> device,
          std::span<const float> initial);

  // In host memory; valid until the next step or call.
  std::span<const float> Parameters() const;
  // In the memory of the device.
  std::span<float> Gradient() { return gradient_.Values(); }

  // Errors: kUnavailable: the device has failed.
  Status Check() { return device_->Check(); }

  double Loss(const BatchView& slice) { return model_.Loss(parameters_.Values(), slice); }

  // Gradient() = the slice's part of the gradient of the mean loss over `global_examples`, one
  // micro batch at a time: each weighs as much as it has examples. Returns the slice's sum of
  // losses.
  double ComputeGradient(const BatchView& slice, std::uint64_t first_example,
                         std::size_t global_examples);

  // The optimizer's step along Gradient(), which must be that of the whole global batch: L2, then
  // clipping, then the step, then running statistics.
  void Apply(std::size_t global_examples);

 private:
  TrainingSpec training_;
  std::unique_ptr<Device> device_;
  Model model_;
  Optimizer optimizer_;
  std::uint64_t step_ = 0;
  Tensor parameters_;
  Tensor gradient_;
  Tensor micro_gradient_;   // of one micro batch, where there are several
  mutable Tensor on_host_;  // the parameters, where the device keeps them elsewhere
};

}  // namespace domicile::models
