#include "models/strategy/gradient_maker.h"

#include <algorithm>
#include <utility>

#include "models/cpu/rounding_device.h"

namespace domicile::models {
namespace {

// A device with memory of its own is no CPU: what its products compute with is its maker's choice.
std::unique_ptr<Device> InPrecision(Precision precision, std::unique_ptr<Device> device) {
  return device->memory().IsHost() ? WithPrecision(precision, std::move(device))
                                   : std::move(device);
}

Model FrozenModel(const TrainingSpec& training, Device& device) {
  Model model(training.model, device);
  model.Freeze(training.frozen);
  return model;
}

}  // namespace

GradientMaker::GradientMaker(const TrainingSpec& training, std::unique_ptr<Device> device)
    : micro_batch_(training.micro_batch),
      device_(InPrecision(training.precision, std::move(device))),
      model_(FrozenModel(training, *device_)),
      gradient_({model_.NumParameters()}, device_->memory()) {}

double GradientMaker::Compute(std::span<const float> parameters, const BatchView& slice,
                              StepPlace place) {
  const std::size_t examples = slice.NumExamples();
  const std::size_t micro = micro_batch_ == 0 ? examples : micro_batch_;
  if (examples <= micro) {
    return model_.LossAndGradient(parameters, slice, place, gradient_.Values());
  }
  const std::uint64_t first_example = place.first_example;
  double loss = model_.LossAndGradient(parameters, slice.Rows(0, micro), place, gradient_.Values());
  if (micro_gradient_.NumElements() == 0) {
    micro_gradient_ = Tensor({gradient_.NumElements()}, device_->memory());
  }
  for (std::size_t first = micro; first < examples; first += micro) {
    place.first_example = first_example + first;
    loss += model_.LossAndGradient(parameters, slice.Rows(first, std::min(micro, examples - first)),
                                   place, micro_gradient_.Values());
    device_->AddScaled(1, micro_gradient_.Values(), gradient_.Values());
  }
  return loss;
}

std::uint64_t GradientMaker::StateBytes() const {
  return (gradient_.NumElements() + micro_gradient_.NumElements()) * sizeof(float);
}

}  // namespace domicile::models
