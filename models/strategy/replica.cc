#include "models/strategy/replica.h"

#include <bit>
#include <utility>

namespace domicile::models {

Replica::Replica(const TrainingSpec& training, std::unique_ptr<Device> device,
                 std::span<const float> initial)
    : maker_(training, std::move(device)),
      updater_(training, maker_.model(), maker_.device()),
      parameters_({initial.size()}, maker_.device().memory()) {
  Copy(parameters_.memory(), initial, parameters_.Values());
}

std::span<const float> Replica::Parameters() const {
  if (parameters_.memory().IsHost()) {
    return parameters_.Values();
  }
  on_host_.ResizeMatrix(1, parameters_.NumElements());
  Copy(parameters_.memory(), parameters_.Values(), on_host_.Values());
  return std::as_const(on_host_).Values();
}

double Replica::ComputeGradient(const BatchView& slice, std::uint64_t first_example,
                                std::size_t global_examples, const FinalFrom* final_from) {
  StepPlace place = updater_.Place(global_examples);
  place.first_example = first_example;
  place.final_from = final_from;
  return maker_.Compute(parameters_.Values(), slice, place);
}

std::uint64_t Replica::ParameterHash() const {
  // Four lanes, so that one multiplication need not wait for the last.
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (const float value : Parameters()) {
    std::uint64_t& lane = lanes[at++ % 4];
    lane = (lane ^ std::bit_cast<std::uint32_t>(value)) * 0x9e3779b97f4a7c15U;
    lane ^= lane >> 32U;
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes) {
    hash = MixKey(hash, lane);
  }
  return hash;
}

TrainingState Replica::State() const {
  TrainingState state = updater_.State();
  const std::span<const float> parameters = Parameters();
  state.parameters.assign(parameters.begin(), parameters.end());
  return state;
}

Status Replica::Restore(const TrainingState& state) {
  RETURN_IF_ERROR(updater_.Restore(state));
  Copy(parameters_.memory(), std::span(state.parameters), parameters_.Values());
  return OkStatus();
}

std::uint64_t Replica::StateBytes() const {
  return parameters_.NumElements() * sizeof(float) + maker_.StateBytes() + updater_.StateBytes();
}

}  // namespace domicile::models
