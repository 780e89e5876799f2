// What strategies with one replica in this process have in common.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "models/strategy/replica.h"
#include "models/strategy/replica_devices.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

class SingleReplica : public Strategy {
 public:
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

 protected:
  SingleReplica(const StrategySpec& strategy, const TrainingSpec& training,
                std::unique_ptr<Device> device, std::span<const float> initial)
      : model_(training.model),
        clock_(ClockOf(strategy)),
        replica_(training, std::move(device), initial) {}

  ModelSpec model_;
  const Clock& clock_;
  Replica replica_;
  ReplicaReport report_;
};

}  // namespace domicile::models
