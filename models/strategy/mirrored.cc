#include "models/strategy/mirrored.h"

#include <algorithm>
#include <barrier>
#include <thread>
#include <utility>
#include <vector>

#include "models/cpu/cpu_device.h"
#include "models/strategy/batch_check.h"
#include "models/strategy/collective.h"

namespace domicile::models {
namespace {

// One copy of the model with everything a step needs. Touched by its own thread only, and by the
// caller between two barriers.
struct Replica {
  Replica(const TrainingSpec& training, std::span<const float> initial)
      : device(MakeCpuDevice(1)),
        network(training.network, *device),
        optimizer(training.optimizer, network.NumParameters(), *device),
        parameters({initial.size()}),
        gradient({initial.size()}) {
    std::copy(initial.begin(), initial.end(), parameters.Values().begin());
  }

  std::unique_ptr<Device> device;
  Network network;
  Optimizer optimizer;
  Tensor parameters;
  Tensor gradient;
};

class Mirrored final : public Strategy {
 public:
  Mirrored(const TrainingSpec& training, std::size_t replicas, std::span<const float> initial)
      : training_(training),
        collective_(replicas),
        begin_(static_cast<std::ptrdiff_t>(replicas) + 1),
        end_(static_cast<std::ptrdiff_t>(replicas) + 1) {
    for (std::size_t rank = 0; rank < replicas; ++rank) {
      replicas_.push_back(std::make_unique<Replica>(training, initial));
    }
    for (std::size_t rank = 0; rank < replicas; ++rank) {
      threads_.emplace_back([this, rank] { Work(rank); });
    }
  }

  ~Mirrored() override {
    command_ = Command::kStop;
    begin_.arrive_and_wait();
    threads_.clear();
  }

  Mirrored(const Mirrored&) = delete;
  Mirrored& operator=(const Mirrored&) = delete;

  StatusOr<double> Step(const BatchView& batch) override { return Order(Command::kStep, batch); }
  StatusOr<double> Loss(const BatchView& batch) override { return Order(Command::kLoss, batch); }

  std::span<const float> Parameters() const override { return ReplicaParameters(0); }
  std::size_t NumReplicas() const override { return replicas_.size(); }
  std::span<const float> ReplicaParameters(std::size_t replica) const override {
    return std::as_const(replicas_.at(replica)->parameters).Values();
  }

 private:
  enum class Command : std::uint8_t { kStop = 0, kStep = 1, kLoss = 2 };

  StatusOr<double> Order(Command command, const BatchView& batch) {
    RETURN_IF_ERROR(CheckBatch(training_.network, batch));
    command_ = command;
    batch_ = batch;
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
    return loss_;
  }

  void Work(std::size_t rank) {
    while (true) {
      begin_.arrive_and_wait();
      if (command_ == Command::kStop) {
        return;
      }
      const std::size_t rows = batch_.inputs.rows;
      const std::size_t first = rank * rows / replicas_.size();
      const std::size_t count = (rank + 1) * rows / replicas_.size() - first;
      const double loss =
          Run(rank, *replicas_[rank],
              {batch_.inputs.Rows(first, count), batch_.labels.subspan(first, count)});
      if (rank == 0) {
        loss_ = loss;
      }
      end_.arrive_and_wait();
    }
  }

  // The replica's part of a step over its slice, which may be empty; the loss of the whole batch.
  double Run(std::size_t rank, Replica& replica, const BatchView& slice) {
    if (command_ == Command::kLoss) {
      return collective_.AllReduceSum(
          rank, replica.network.Loss(replica.parameters.Values(), slice.inputs, slice.labels));
    }
    // Divided by the rows of the global batch, so that the sum over replicas is the gradient of
    // the mean, however unequal the slices are.
    const double loss = replica.network.LossAndGradient(
        replica.parameters.Values(), slice.inputs, slice.labels,
        static_cast<double>(batch_.inputs.rows), replica.gradient.Values());
    collective_.AllReduceSum(rank, replica.gradient.Values());
    // L2 does not depend on rows: each replica adds it once, after the sum.
    replica.network.AddL2(training_.l2, replica.parameters.Values(), replica.gradient.Values());
    replica.optimizer.Step(replica.gradient.Values(), replica.parameters.Values());
    return collective_.AllReduceSum(rank, loss);
  }

  TrainingSpec training_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  SharedMemoryCollective collective_;

  // Written by the caller before begin_ and read by the replicas between begin_ and end_, or the
  // other way round for loss_: the barriers order them.
  std::barrier<> begin_;
  std::barrier<> end_;
  Command command_ = Command::kStop;
  BatchView batch_;
  double loss_ = 0;

  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

}  // namespace

std::unique_ptr<Strategy> MakeMirrored(const TrainingSpec& training, std::size_t replicas,
                                       std::span<const float> initial) {
  return std::make_unique<Mirrored>(training, replicas, initial);
}

}  // namespace domicile::models
