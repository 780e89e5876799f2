#include "models/strategy/one_device.h"

#include "models/cpu/cpu_device.h"
#include "models/strategy/replica.h"

namespace domicile::models {
namespace {

class OneDevice final : public Strategy {
 public:
  OneDevice(const TrainingSpec& training, std::size_t threads, std::span<const float> initial)
      : model_(training.model), replica_(training, MakeCpuDevice(threads), initial) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const std::size_t examples = batch.NumExamples();
    const double loss = replica_.ComputeGradient(batch, 0, examples);
    replica_.Apply(examples);
    RETURN_IF_ERROR(replica_.Check());
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

 private:
  ModelSpec model_;
  Replica replica_;
};

}  // namespace

std::unique_ptr<Strategy> MakeOneDevice(const TrainingSpec& training, std::size_t threads,
                                        std::span<const float> initial) {
  return std::make_unique<OneDevice>(training, threads, initial);
}

}  // namespace domicile::models
