#include "models/strategy/multi_worker.h"

#include "models/cpu/cpu_device.h"
#include "models/strategy/replica.h"
#include "models/strategy/replica_devices.h"
#include "models/strategy/slice.h"

namespace domicile::models {
namespace {

class MultiWorker final : public Strategy {
 public:
  MultiWorker(const TrainingSpec& training, std::size_t threads, WorkerGroup& group,
              std::span<const float> initial)
      : model_(training.model),
        group_(group),
        replica_(training, MakeCpuDevice(threads), initial) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const std::size_t examples = batch.NumExamples();
    const Slice slice = SliceOf(group_.Rank(), group_.NumRanks(), examples);
    StepTimer timer(clock_);
    const double part =
        replica_.ComputeGradient(batch.Rows(slice.first, slice.count), slice.first, examples);
    timer.MarkInto(report_.computing);
    RETURN_IF_ERROR(group_.AllReduceSum(replica_.Gradient()));
    timer.MarkInto(report_.communicating);
    replica_.Apply(examples);
    timer.MarkInto(report_.computing);
    ASSIGN_OR_RETURN(const double loss, group_.AllReduceSum(part));
    timer.MarkInto(report_.communicating);
    report_.examples += slice.count;
    return loss;
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const Slice slice = SliceOf(group_.Rank(), group_.NumRanks(), batch.NumExamples());
    return group_.AllReduceSum(replica_.Loss(batch.Rows(slice.first, slice.count)));
  }

  std::span<const float> Parameters() const override { return replica_.Parameters(); }
  std::size_t NumReplicas() const override { return 1; }
  std::span<const float> ReplicaParameters(std::size_t /*replica*/) const override {
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
  WorkerGroup& group_;
  const Clock& clock_ = ClockOf({});
  Replica replica_;
  ReplicaReport report_;  // of this worker
};

}  // namespace

std::unique_ptr<Strategy> MakeMultiWorker(const TrainingSpec& training, std::size_t threads,
                                          WorkerGroup& group, std::span<const float> initial) {
  return std::make_unique<MultiWorker>(training, threads, group, initial);
}

}  // namespace domicile::models
