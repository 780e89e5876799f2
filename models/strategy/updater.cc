#include "models/strategy/updater.h"

#include <algorithm>
#include <cmath>

namespace domicile::models {
namespace {

std::vector<ParameterRange> Copy(std::span<const ParameterRange> ranges) {
  return {ranges.begin(), ranges.end()};
}

}  // namespace

bool MakeReady(const TrainingSpec& training, Model& model, Device& device, double loss_scale,
               std::span<const float> parameters, std::span<float> gradient) {
  if (training.precision == Precision::kFloat16) {
    for (const ParameterRange& range : model.TrainedRanges()) {
      const std::span<float> values = gradient.subspan(range.offset, range.size);
      if (!std::isfinite(device.SquaredNorm(values))) {
        return false;
      }
      device.Scale(static_cast<float>(1 / loss_scale), values);
    }
  }
  model.AddL2(training.l2, parameters, gradient);
  if (training.clip_norm > 0) {
    ClipByGlobalNorm(training.clip_norm, model.TrainedRanges(), gradient, device);
  }
  return true;
}

double RateShareOf(const TrainingSpec& training, std::uint64_t num_updates) {
  return RateShare(training.schedule, training.schedule_step + num_updates);
}

StepPlace PlaceOf(const TrainingSpec& training, std::uint64_t step, std::size_t examples,
                  const LossScale& loss_scale) {
  return {.divisor = static_cast<double>(examples),
          .first_example = 0,
          .dropout_key = MixKey(training.seed, step),
          .loss_scale = loss_scale.scale};
}

LossScale FirstLossScale(const TrainingSpec& training) {
  return {.scale = training.precision == Precision::kFloat16 ? training.loss_scale.initial : 1};
}

Status CheckState(const TrainingState& state, std::size_t num_parameters) {
  if (state.parameters.size() != num_parameters) {
    return Error(StatusCode::kInvalidArgument, "the parameters are not those of this model");
  }
  return CheckSpec(LossScaleSpec{.initial = state.loss_scale.scale});
}

Updater::Updater(const TrainingSpec& training, Model& model, Device& device)
    : training_(training),
      model_(&model),
      device_(&device),
      optimizer_(training.optimizer, Copy(model.TrainedRanges()), device),
      loss_scale_(FirstLossScale(training)) {}

void Updater::Apply(std::size_t examples, std::span<float> gradient, std::span<float> parameters) {
  const bool ready =
      MakeReady(training_, *model_, *device_, loss_scale_.scale, parameters, gradient);
  if (ready) {
    optimizer_.Step(gradient, parameters, RateShareOf(training_, optimizer_.NumSteps()));
    model_->UpdateStatistics(static_cast<double>(examples), gradient, parameters);
  } else {
    ++skipped_;
  }
  if (training_.precision == Precision::kFloat16) {
    loss_scale_ = NextLossScale(training_.loss_scale, loss_scale_, !ready);
  }
  ++step_;
}

TrainingState Updater::State() const {
  return {
      .step = step_, .parameters = {}, .optimizer = optimizer_.State(), .loss_scale = loss_scale_};
}

Status Updater::Restore(const TrainingState& state) {
  RETURN_IF_ERROR(CheckState(state, model_->NumParameters()));
  RETURN_IF_ERROR(optimizer_.Restore(state.optimizer));
  step_ = state.step;
  if (training_.precision == Precision::kFloat16) {
    loss_scale_ = state.loss_scale;
  }
  return OkStatus();
}

}  // namespace domicile::models
