#include "models/strategy/one_device.h"

#include <utility>

#include "models/strategy/replica_devices.h"
#include "models/strategy/single_replica.h"

namespace domicile::models {
namespace {

class OneDevice final : public SingleReplica {
 public:
  OneDevice(const StrategySpec& strategy, const TrainingSpec& training,
            std::unique_ptr<Device> device, std::span<const float> initial)
      : SingleReplica(strategy, training, std::move(device), initial) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const MonotonicTime start = clock_.Monotonic();
    const std::size_t examples = batch.NumExamples();
    const double loss = replica_.ComputeGradient(batch, 0, examples);
    replica_.Apply(examples);
    RETURN_IF_ERROR(replica_.Check());
    report_.examples += examples;
    report_.computing += clock_.Monotonic() - start;
    return loss;
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const double loss = replica_.Loss(batch);
    RETURN_IF_ERROR(replica_.Check());
    return loss;
  }
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(const StrategySpec& strategy,
                                                  const TrainingSpec& training,
                                                  std::span<const float> initial) {
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, 0, strategy.threads));
  return std::make_unique<OneDevice>(strategy, training, std::move(device), initial);
}

}  // namespace domicile::models
