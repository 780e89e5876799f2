#include "models/strategy/multi_worker.h"

#include <utility>

#include "models/memory.h"
#include "models/strategy/replica_devices.h"
#include "models/strategy/single_replica.h"
#include "models/strategy/slice.h"
#include "models/tensor.h"

namespace domicile::models {
namespace {

class MultiWorker final : public SingleReplica {
 public:
  MultiWorker(const StrategySpec& strategy, const TrainingSpec& training,
              std::unique_ptr<Device> device, std::span<const float> initial)
      : SingleReplica(strategy, training, std::move(device), initial), group_(*strategy.workers) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const std::size_t examples = batch.NumExamples();
    const Slice slice = SliceOf(group_.Rank(), group_.NumRanks(), examples);
    StepTimer timer(clock_);
    const double part =
        replica_.ComputeGradient(batch.Rows(slice.first, slice.count), slice.first, examples);
    RETURN_IF_ERROR(replica_.Check());
    timer.MarkInto(report_.computing);
    RETURN_IF_ERROR(AddUp());
    timer.MarkInto(report_.communicating);
    replica_.Apply(examples);
    RETURN_IF_ERROR(replica_.Check());
    timer.MarkInto(report_.computing);
    ASSIGN_OR_RETURN(const double loss, group_.AllReduceSum(part));
    timer.MarkInto(report_.communicating);
    report_.examples += slice.count;
    return loss;
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const Slice slice = SliceOf(group_.Rank(), group_.NumRanks(), batch.NumExamples());
    const double part = replica_.Loss(batch.Rows(slice.first, slice.count));
    RETURN_IF_ERROR(replica_.Check());
    return group_.AllReduceSum(part);
  }

 private:
  // Gradients of all workers, by way of the host where the device keeps them elsewhere.
  Status AddUp() {
    Memory& memory = replica_.device().memory();
    if (memory.IsHost()) {
      return group_.AllReduceSum(replica_.Gradient());
    }
    on_host_.ResizeMatrix(1, replica_.Gradient().size());
    const std::span<float> here = on_host_.Values();
    Copy(memory, std::span<const float>(replica_.Gradient()), here);
    RETURN_IF_ERROR(group_.AllReduceSum(here));
    Copy(memory, std::span<const float>(here), replica_.Gradient());
    return replica_.Check();
  }

  WorkerGroup& group_;
  Tensor on_host_;
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeMultiWorker(const StrategySpec& strategy,
                                                    const TrainingSpec& training,
                                                    std::span<const float> initial) {
  if (strategy.workers == nullptr) {
    return Error(StatusCode::kInvalidArgument, "the strategy needs a group of workers");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, 0, strategy.threads));
  return std::make_unique<MultiWorker>(strategy, training, std::move(device), initial);
}

}  // namespace domicile::models
