#include "models/strategy/one_device.h"

#include <utility>

#include "models/strategy/replica.h"
#include "models/strategy/replica_devices.h"

namespace domicile::models {
namespace {

class OneDevice final : public Strategy {
 public:
  OneDevice(const StrategySpec& strategy, const TrainingSpec& training,
            std::unique_ptr<Device> device, std::span<const float> initial)
      : model_(training.model),
        clock_(ClockOf(strategy)),
        replica_(training, std::move(device), initial) {}

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

  std::span<const float> Parameters() const override { return replica_.Parameters(); }
  std::size_t NumReplicas() const override { return 1; }
  std::span<const float> ReplicaParameters(std::size_t replica) const override {
    DOMICILE_CHECK(replica == 0);
    return replica_.Parameters();
  }

  TrainingState State() const override { return replica_.State(); }
  Status Restore(const TrainingState& state) override { return replica_.Restore(state); }

  StepReport Report() const override {
    const Updater& updater = replica_.updater();
    StepReport report = {.steps = updater.Step(),
                         .skipped = updater.Skipped(),
                         .loss_scale = updater.Scale(),
                         .replicas = {report_}};
    report.replicas[0].state_bytes = replica_.StateBytes();
    return report;
  }

 private:
  ModelSpec model_;
  const Clock& clock_;
  Replica replica_;
  ReplicaReport report_;
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(const StrategySpec& strategy,
                                                  const TrainingSpec& training,
                                                  std::span<const float> initial) {
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, 0, strategy.threads));
  return std::make_unique<OneDevice>(strategy, training, std::move(device), initial);
}

}  // namespace domicile::models
