#include "models/strategy/mirrored.h"

#include <barrier>
#include <thread>
#include <utility>
#include <vector>

#include "models/cpu/cpu_device.h"
#include "models/strategy/collective.h"
#include "models/strategy/replica.h"

namespace domicile::models {
namespace {

class Mirrored final : public Strategy {
 public:
  Mirrored(const TrainingSpec& training, std::size_t replicas, std::span<const float> initial)
      : model_(training.model),
        collective_(replicas),
        begin_(static_cast<std::ptrdiff_t>(replicas) + 1),
        end_(static_cast<std::ptrdiff_t>(replicas) + 1) {
    for (std::size_t rank = 0; rank < replicas; ++rank) {
      replicas_.push_back(std::make_unique<Replica>(training, MakeCpuDevice(1), initial));
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
    return replicas_.at(replica)->Parameters();
  }

 private:
  enum class Command : std::uint8_t { kStop = 0, kStep = 1, kLoss = 2 };

  StatusOr<double> Order(Command command, const BatchView& batch) {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
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
      const std::size_t examples = batch_.NumExamples();
      const std::size_t first = rank * examples / replicas_.size();
      const std::size_t count = (rank + 1) * examples / replicas_.size() - first;
      const double loss = Run(rank, *replicas_[rank], batch_.Rows(first, count), first);
      if (rank == 0) {
        loss_ = loss;
      }
      end_.arrive_and_wait();
    }
  }

  // The replica's part of a step over its slice, which may be empty; the loss of the whole batch.
  double Run(std::size_t rank, Replica& replica, const BatchView& slice, std::size_t first) {
    if (command_ == Command::kLoss) {
      return collective_.AllReduceSum(rank, replica.Loss(slice));
    }
    // Divided by the examples of the global batch, so that the sum over replicas is the gradient of
    // the mean, however unequal the slices are.
    const std::size_t examples = batch_.NumExamples();
    const double loss = replica.ComputeGradient(slice, first, examples);
    collective_.AllReduceSum(rank, replica.Gradient());
    replica.Apply(examples);
    return collective_.AllReduceSum(rank, loss);
  }

  ModelSpec model_;
  // Each touched by its own thread only, and by the caller between two steps.
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
