#include "models/strategy/replica.h"

#include <algorithm>
#include <utility>

namespace domicile::models {
namespace {

Model FrozenModel(const TrainingSpec& training, Device& device) {
  Model model(training.model, device);
  model.Freeze(training.frozen);
  return model;
}

std::vector<ParameterRange> Copy(std::span<const ParameterRange> ranges) {
  return {ranges.begin(), ranges.end()};
}

}  // namespace

Replica::Replica(const TrainingSpec& training, std::unique_ptr<Device> device,
                 std::span<const float> initial)
    : training_(training),
      device_(std::move(device)),
      model_(FrozenModel(training, *device_)),
      optimizer_(training.optimizer, Copy(model_.TrainedRanges()), *device_),
      parameters_({initial.size()}, device_->memory()),
      gradient_({initial.size()}, device_->memory()) {
  models::Copy(device_->memory(), initial, parameters_.Values());
}

std::span<const float> Replica::Parameters() const {
  if (parameters_.memory().IsHost()) {
    return parameters_.Values();
  }
  on_host_.ResizeMatrix(1, parameters_.NumElements());
  models::Copy(parameters_.memory(), parameters_.Values(), on_host_.Values());
  return on_host_.Values();
}

double Replica::ComputeGradient(const BatchView& slice, std::uint64_t first_example,
                                std::size_t global_examples) {
  StepPlace place = {.divisor = static_cast<double>(global_examples),
                     .first_example = first_example,
                     .dropout_key = MixKey(training_.seed, step_)};
  const std::size_t examples = slice.NumExamples();
  const std::size_t micro = training_.micro_batch == 0 ? examples : training_.micro_batch;
  if (examples <= micro) {
    return model_.LossAndGradient(parameters_.Values(), slice, place, gradient_.Values());
  }
  double loss =
      model_.LossAndGradient(parameters_.Values(), slice.Rows(0, micro), place, gradient_.Values());
  if (micro_gradient_.NumElements() == 0) {
    micro_gradient_ = Tensor({gradient_.NumElements()}, device_->memory());
  }
  for (std::size_t first = micro; first < examples; first += micro) {
    place.first_example = first_example + first;
    loss += model_.LossAndGradient(parameters_.Values(),
                                   slice.Rows(first, std::min(micro, examples - first)), place,
                                   micro_gradient_.Values());
    device_->AddScaled(1, micro_gradient_.Values(), gradient_.Values());
  }
  return loss;
}

void Replica::Apply(std::size_t global_examples) {
  model_.AddL2(training_.l2, parameters_.Values(), gradient_.Values());
  if (training_.clip_norm > 0) {
    ClipByGlobalNorm(training_.clip_norm, model_.TrainedRanges(), gradient_.Values(), *device_);
  }
  optimizer_.Step(gradient_.Values(), parameters_.Values(), RateShare(training_.schedule, step_));
  model_.UpdateStatistics(static_cast<double>(global_examples), gradient_.Values(),
                          parameters_.Values());
  ++step_;
}

}  // namespace domicile::models
