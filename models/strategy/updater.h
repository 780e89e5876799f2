// What becomes of a gradient: loss scale, L2, clipping, the optimizer's step, running statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// Makes the gradient of a global batch ready for the optimizer: divides by the loss scale, adds L2,
// clips. False, with the gradient in any state, if it has overflowed: only in float16, where that
// is part of the game. An infinite or NaN value of any replica is still one in the sum over
// replicas, so all replicas see the same.
bool MakeReady(const TrainingSpec& training, Model& model, Device& device, double loss_scale,
               std::span<const float> parameters, std::span<float> gradient);

// The share of the learning rate at the update of that number.
double RateShareOf(const TrainingSpec& training, std::uint64_t num_updates);

// Where example 0 of a step's batch stands.
StepPlace PlaceOf(const TrainingSpec& training, std::uint64_t step, std::size_t examples,
                  const LossScale& loss_scale);

// The first loss scale: 1 unless float16 needs one.
LossScale FirstLossScale(const TrainingSpec& training);

// Errors: kInvalidArgument: parameters of another size, or a loss scale outside its bounds.
Status CheckState(const TrainingState& state, std::size_t num_parameters);

// Borrows model and device, which must outlive it. One thread at a time.
class Updater {
 public:
  Updater(const TrainingSpec& training, Model& model, Device& device);

  StepPlace Place(std::size_t examples) const {
    return PlaceOf(training_, step_, examples, loss_scale_);
  }

  // One step along the gradient of the whole global batch, made with Place(examples).
  void Apply(std::size_t examples, std::span<float> gradient, std::span<float> parameters);

  std::uint64_t Step() const { return step_; }
  std::uint64_t Skipped() const { return skipped_; }
  double Scale() const { return loss_scale_.scale; }
  std::uint64_t StateBytes() const { return optimizer_.StateBytes(); }

  // All but the parameters.
  TrainingState State() const;
  // Errors, nothing changed: kInvalidArgument.
  Status Restore(const TrainingState& state);

 private:
  TrainingSpec training_;
  Model* model_;
  Device* device_;
  Optimizer optimizer_;
  LossScale loss_scale_;
  std::uint64_t step_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace domicile::models
