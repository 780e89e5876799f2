#include "models/strategy/one_device.h"

#include <algorithm>
#include <utility>

#include "models/cpu/cpu_device.h"
#include "models/strategy/batch_check.h"

namespace domicile::models {
namespace {

class OneDevice final : public Strategy {
 public:
  OneDevice(const TrainingSpec& training, std::size_t threads, std::span<const float> initial)
      : l2_(training.l2),
        device_(MakeCpuDevice(threads)),
        network_(training.network, *device_),
        optimizer_(training.optimizer, network_.NumParameters(), *device_),
        parameters_({initial.size()}),
        gradient_({initial.size()}) {
    std::copy(initial.begin(), initial.end(), parameters_.Values().begin());
  }

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(network_.spec(), batch));
    const double loss =
        network_.LossAndGradient(parameters_.Values(), batch.inputs, batch.labels,
                                 static_cast<double>(batch.inputs.rows), gradient_.Values());
    network_.AddL2(l2_, parameters_.Values(), gradient_.Values());
    optimizer_.Step(gradient_.Values(), parameters_.Values());
    return loss;
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(network_.spec(), batch));
    return network_.Loss(parameters_.Values(), batch.inputs, batch.labels);
  }

  std::span<const float> Parameters() const override { return parameters_.Values(); }
  std::size_t NumReplicas() const override { return 1; }
  std::span<const float> ReplicaParameters(std::size_t replica) const override {
    DOMICILE_CHECK(replica == 0);
    return parameters_.Values();
  }

 private:
  double l2_;
  std::unique_ptr<Device> device_;
  Network network_;
  Optimizer optimizer_;
  Tensor parameters_;
  Tensor gradient_;
};

}  // namespace

std::unique_ptr<Strategy> MakeOneDevice(const TrainingSpec& training, std::size_t threads,
                                        std::span<const float> initial) {
  return std::make_unique<OneDevice>(training, threads, initial);
}

}  // namespace domicile::models
