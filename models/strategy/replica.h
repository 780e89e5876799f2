// One copy of a model with everything a step needs: what a strategy has one or several of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "models/strategy/gradient_maker.h"
#include "models/strategy/strategy.h"
#include "models/strategy/updater.h"

namespace domicile::models {

// One thread at a time.
class Replica {
 public:
  // `initial` must have the model's size.
  Replica(const TrainingSpec& training, std::unique_ptr<Device> device,
          std::span<const float> initial);

  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // In host memory; valid until the next step or call.
  std::span<const float> Parameters() const;
  // In the memory of the device.
  std::span<float> Gradient() { return maker_.Gradient(); }

  const ParameterLayout& layout() { return maker_.model().layout(); }
  Device& device() { return maker_.device(); }
  // Errors: kUnavailable: the device has failed.
  Status Check() { return device().Check(); }

  double Loss(const BatchView& slice) { return maker_.Loss(parameters_.Values(), slice); }

  // Gradient() = the slice's part of the gradient of the mean loss over `global_examples`, times
  // the loss scale. Returns the slice's sum of losses. `final_from` is told as Gradient() becomes
  // final, at last of entry 0.
  double ComputeGradient(const BatchView& slice, std::uint64_t first_example,
                         std::size_t global_examples, const FinalFrom* final_from = nullptr);

  // The optimizer's step along Gradient(), which must be that of the whole global batch.
  void Apply(std::size_t global_examples) {
    updater_.Apply(global_examples, Gradient(), parameters_.Values());
  }

  // A number that differs, all but certainly, where a bit of the parameters does.
  std::uint64_t ParameterHash() const;

  TrainingState State() const;
  Status Restore(const TrainingState& state);
  const Updater& updater() const { return updater_; }
  std::uint64_t StateBytes() const;

 private:
  GradientMaker maker_;
  Updater updater_;
  Tensor parameters_;
  mutable Tensor on_host_;  // the parameters, where the device keeps them elsewhere
};

}  // namespace domicile::models
