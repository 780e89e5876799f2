#include "models/strategy/multi_worker.h"

#include <utility>

#include "models/cpu/cpu_device.h"
#include "models/strategy/replica.h"

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
    const auto [first, count] = Slice(examples);
    const double loss = replica_.ComputeGradient(batch.Rows(first, count), first, examples);
    RETURN_IF_ERROR(group_.AllReduceSum(replica_.Gradient()));
    replica_.Apply(examples);
    return group_.AllReduceSum(loss);
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const auto [first, count] = Slice(batch.NumExamples());
    return group_.AllReduceSum(replica_.Loss(batch.Rows(first, count)));
  }

  std::span<const float> Parameters() const override { return replica_.Parameters(); }
  std::size_t NumReplicas() const override { return 1; }
  std::span<const float> ReplicaParameters(std::size_t /*replica*/) const override {
    return replica_.Parameters();
  }

 private:
  std::pair<std::size_t, std::size_t> Slice(std::size_t examples) const {
    const std::size_t first = group_.Rank() * examples / group_.NumRanks();
    return {first, (group_.Rank() + 1) * examples / group_.NumRanks() - first};
  }

  ModelSpec model_;
  WorkerGroup& group_;
  Replica replica_;
};

}  // namespace

std::unique_ptr<Strategy> MakeMultiWorker(const TrainingSpec& training, std::size_t threads,
                                          WorkerGroup& group, std::span<const float> initial) {
  return std::make_unique<MultiWorker>(training, threads, group, initial);
}

}  // namespace domicile::models
