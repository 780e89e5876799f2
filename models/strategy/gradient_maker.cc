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
  const FinalFrom* const final_from = std::exchange(place.final_from, nullptr);
  double loss = model_.LossAndGradient(parameters, slice.Rows(0, micro), place, gradient_.Values());
  if (micro_gradient_.NumElements() == 0) {
    micro_gradient_ = Tensor({gradient_.NumElements()}, device_->memory());
  }
  std::size_t added_from = 0;
  const auto add_from = [this, &added_from](std::size_t first) {
    if (first < added_from) {
      device_->AddScaled(1, micro_gradient_.Values().subspan(first, added_from - first),
                         gradient_.Values().subspan(first, added_from - first));
      added_from = first;
    }
  };
  // Of the last micro batch: what is final in its gradient is so in the sum once it has been added.
  const FinalFrom add_and_tell = [&add_from, final_from](std::size_t first) {
    add_from(first);
    (*final_from)(first);
  };
  for (std::size_t first = micro; first < examples; first += micro) {
    const std::size_t count = std::min(micro, examples - first);
    place.first_example = first_example + first;
    place.final_from = final_from != nullptr && first + count == examples ? &add_and_tell : nullptr;
    added_from = gradient_.NumElements();
    loss += model_.LossAndGradient(parameters, slice.Rows(first, count), place,
                                   micro_gradient_.Values());
    add_from(0);
  }
  return loss;
}

std::uint64_t GradientMaker::StateBytes() const {
  return (gradient_.NumElements() + micro_gradient_.NumElements()) * sizeof(float);
}

}  // namespace domicile::models
