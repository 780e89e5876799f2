#include "models/strategy/strategy.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "models/strategy/central_storage.h"
#include "models/strategy/mirrored.h"
#include "models/strategy/multi_worker.h"
#include "models/strategy/one_device.h"
#include "models/strategy/parameter_server.h"

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

// The patterns one by one: each must say something.
Status CheckFrozen(const ModelSpec& model, std::span<const std::string> patterns) {
  ParameterLayout layout = LayoutOf(model);
  for (const std::string& pattern : patterns) {
    const auto views = layout.Views();
    if (std::none_of(views.begin(), views.end(), [&pattern](const ParameterView& view) {
          return MatchesPattern(pattern, view.name);
        })) {
      return Error(StatusCode::kInvalidArgument,
                   "no tensor of the model matches the frozen pattern `" + pattern + "`");
    }
  }
  layout.Freeze(patterns);
  if (layout.TrainedRanges().empty()) {
    return Error(StatusCode::kInvalidArgument, "every tensor of the model is frozen");
  }
  return OkStatus();
}

}  // namespace

double ReplicaReport::CommunicationShare() const {
  const auto both = static_cast<double>((computing + communicating).count());
  return both > 0 ? static_cast<double>(communicating.count()) / both : 0;
}

StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const StrategySpec& strategy,
                                                 const TrainingSpec& training,
                                                 std::span<const float> initial) {
  RETURN_IF_ERROR(CheckSpec(training.model));
  RETURN_IF_ERROR(CheckSpec(training.optimizer));
  RETURN_IF_ERROR(CheckSchedule(training.schedule));
  RETURN_IF_ERROR(CheckSpec(training.loss_scale));
  RETURN_IF_ERROR(CheckFrozen(training.model, training.frozen));
  if (!(training.l2 >= 0) || !(training.clip_norm >= 0)) {
    return Error(StatusCode::kInvalidArgument, "`l2` and `clip_norm` must be 0 or above");
  }
  if (initial.size() != LayoutOf(training.model).NumParameters()) {
    return Error(StatusCode::kInvalidArgument, "the first parameters do not have the model's size");
  }
  switch (strategy.kind) {
    case StrategyKind::kOneDevice:
      RETURN_IF_ERROR(CheckCount(strategy.threads, "threads"));
      return MakeOneDevice(strategy, training, initial);
    case StrategyKind::kMirrored:
      RETURN_IF_ERROR(CheckCount(strategy.replicas, "replicas"));
      return MakeMirrored(strategy, training, initial);
    case StrategyKind::kCentralStorage:
      RETURN_IF_ERROR(CheckCount(strategy.threads, "threads"));
      RETURN_IF_ERROR(CheckCount(strategy.replicas, "replicas"));
      return MakeCentralStorage(strategy, training, initial);
    case StrategyKind::kParameterServer:
      RETURN_IF_ERROR(CheckCount(strategy.replicas, "replicas"));
      RETURN_IF_ERROR(CheckCount(strategy.servers, "servers"));
      return MakeParameterServer(strategy, training, initial);
    case StrategyKind::kMultiWorkerMirrored:
      RETURN_IF_ERROR(CheckCount(strategy.threads, "threads"));
      return MakeMultiWorker(strategy, training, initial);
    case StrategyKind::kNone:
      break;
  }
  return Error(StatusCode::kInvalidArgument, "a strategy must be named");
}

}  // namespace domicile::models
