#include "models/strategy/strategy.h"

#include <algorithm>
#include <string>

#include "models/strategy/batch_check.h"
#include "models/strategy/mirrored.h"
#include "models/strategy/one_device.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMaxParallel = 1024;

Status CheckCount(std::size_t count, std::string_view what) {
  if (count < 1 || count > kMaxParallel) {
    return Error(StatusCode::kInvalidArgument,
                 "a strategy needs 1 to " + std::to_string(kMaxParallel) + " " + std::string(what));
  }
  return OkStatus();
}

}  // namespace

Status CheckBatch(const NetworkSpec& network, const BatchView& batch) {
  if (batch.inputs.rows == 0 || batch.inputs.rows != batch.labels.size() ||
      batch.inputs.columns != network.num_inputs) {
    return Error(StatusCode::kInvalidArgument,
                 "a batch needs at least one row, a label for each, and the network's inputs");
  }
  const std::size_t classes = network.NumClasses();
  if (std::any_of(batch.labels.begin(), batch.labels.end(),
                  [classes](std::uint32_t label) { return label >= classes; })) {
    return Error(StatusCode::kInvalidArgument, "a label is beyond the network's classes");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const StrategySpec& strategy,
                                                 const TrainingSpec& training,
                                                 std::span<const float> initial) {
  RETURN_IF_ERROR(CheckSpec(training.network));
  RETURN_IF_ERROR(CheckSpec(training.optimizer));
  if (!(training.l2 >= 0)) {
    return Error(StatusCode::kInvalidArgument, "`l2` must be 0 or above");
  }
  if (initial.size() != NumParameters(training.network)) {
    return Error(StatusCode::kInvalidArgument,
                 "the first parameters do not have the network's size");
  }
  switch (strategy.kind) {
    case StrategyKind::kOneDevice:
      RETURN_IF_ERROR(CheckCount(strategy.threads, "threads"));
      return MakeOneDevice(training, strategy.threads, initial);
    case StrategyKind::kMirrored:
      RETURN_IF_ERROR(CheckCount(strategy.replicas, "replicas"));
      return MakeMirrored(training, strategy.replicas, initial);
    case StrategyKind::kNone:
      break;
  }
  return Error(StatusCode::kInvalidArgument, "a strategy must be named");
}

}  // namespace domicile::models
