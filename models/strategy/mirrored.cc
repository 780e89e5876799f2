#include "models/strategy/mirrored.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/strategy/buckets.h"
#include "models/strategy/owned_batch.h"
#include "models/strategy/replica.h"
#include "models/strategy/replica_threads.h"
#include "models/strategy/slice.h"

namespace domicile::models {
namespace {

// How much a replica's buffers hold room for, in what they grow with.
struct Room {
  std::size_t rows = 0;   // examples, or tokens of all sequences
  std::size_t pairs = 0;  // of a row and a token that it attends to

  // Whether the slice fits; afterwards it does.
  bool Take(const BatchView& slice) {
    const std::size_t length = std::max<std::size_t>(slice.tokens.length, 1);
    const std::size_t new_rows = slice.NumExamples() * length;
    const std::size_t new_pairs = new_rows * length;
    const bool fits = new_rows <= rows && new_pairs <= pairs;
    rows = std::max(rows, new_rows);
    pairs = std::max(pairs, new_pairs);
    return fits;
  }
};

// What the threads work on; a thread that hangs keeps it alive.
struct Core {
  Core(const StrategySpec& strategy, std::shared_ptr<ReplicaBonds> the_bonds)
      : bonds(std::move(the_bonds)),
        clock(ClockOf(strategy)),
        rooms(strategy.replicas),
        on_host(strategy.replicas),
        reports(strategy.replicas),
        losses(strategy.replicas),
        hashes(strategy.replicas) {}

  std::shared_ptr<ReplicaBonds> bonds;  // second owner: ReplicaThreads
  const Clock& clock;
  // Each touched by its own thread only, and by the caller between two steps.
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<Room> rooms;
  std::vector<Tensor> on_host;  // gradients, where devices keep theirs elsewhere
  std::vector<ReplicaReport> reports;
  std::vector<double> losses;  // of the slices
  std::vector<std::uint64_t> hashes;
  std::unique_ptr<DeviceSum> device_sum;  // null: the host adds up; borrows the replicas' devices
  std::vector<Bucket> buckets;            // of the gradient, for device_sum
  // Written by the caller before a step, read by the replicas.
  OwnedBatch batch;

  // Returns the slice's sum of losses. Devices that can begin to add up while the way back goes on;
  // the host adds up on the cores that it computes on, so there is nothing to gain.
  double ComputeGradient(std::size_t rank, const BatchView& slice, std::size_t first_example) {
    Replica& replica = *replicas[rank];
    const std::size_t examples = batch.View().NumExamples();
    if (device_sum == nullptr) {
      return replica.ComputeGradient(slice, first_example, examples);
    }
    // Not where buffers may grow: a device gives memory back when all it does has ended, and a sum
    // under way ends when the others have come as far.
    const bool overlaps = rooms[rank].Take(slice);
    BucketQueue queue(buckets);
    const FinalFrom begin = [this, rank, overlaps, &queue, &replica](std::size_t entry) {
      if (!overlaps && entry > 0) {
        return;
      }
      queue.Advance(entry, [this, rank, &replica](const Bucket& bucket) {
        for (const GradientRun& run : bucket.runs) {
          device_sum->Begin(rank, replica.Gradient().subspan(run.offset, run.size));
        }
      });
    };
    return replica.ComputeGradient(slice, first_example, examples, &begin);
  }

  // The gradient of every replica becomes the sum of all.
  Status AddUp(std::size_t rank) {
    Replica& replica = *replicas[rank];
    if (device_sum != nullptr) {
      device_sum->Finish(rank);
      return replica.Check();
    }
    Memory& memory = replica.device().memory();
    if (memory.IsHost()) {
      return bonds->collective.AllReduceSum(rank, replica.Gradient());
    }
    on_host[rank].ResizeMatrix(1, replica.Gradient().size());
    const std::span<float> here = on_host[rank].Values();
    Copy(memory, std::span<const float>(replica.Gradient()), here);
    RETURN_IF_ERROR(bonds->collective.AllReduceSum(rank, here));
    Copy(memory, std::span<const float>(here), replica.Gradient());
    return OkStatus();
  }

  Status Step(std::size_t rank, bool check) {
    Replica& replica = *replicas[rank];
    ReplicaReport& report = reports[rank];
    StepTimer timer(clock);
    const std::size_t examples = batch.View().NumExamples();
    const Slice slice = SliceOf(rank, replicas.size(), examples);
    // Divided by the examples of the global batch, so that the sum over replicas is the gradient of
    // the mean, however unequal the slices are.
    losses[rank] = ComputeGradient(rank, batch.View().Rows(slice.first, slice.count), slice.first);
    RETURN_IF_ERROR(replica.Check());
    timer.MarkInto(report.computing);
    RETURN_IF_ERROR(AddUp(rank));
    timer.MarkInto(report.communicating);
    replica.Apply(examples);
    RETURN_IF_ERROR(replica.Check());
    timer.MarkInto(report.computing);
    if (check) {
      hashes[rank] = replica.ParameterHash();
    }
    report.examples += slice.count;
    return OkStatus();
  }

  Status Loss(std::size_t rank) {
    const Slice slice = SliceOf(rank, replicas.size(), batch.View().NumExamples());
    losses[rank] = replicas[rank]->Loss(batch.View().Rows(slice.first, slice.count));
    return replicas[rank]->Check();
  }

  double SumOfLosses() const {
    double sum = 0;
    for (const double loss : losses) {
      sum += loss;
    }
    return sum;
  }
};

class Mirrored final : public Strategy {
 public:
  Mirrored(const StrategySpec& strategy, const TrainingSpec& training, std::shared_ptr<Core> core)
      : model_(training.model),
        check_every_(strategy.check_every),
        core_(std::move(core)),
        threads_(strategy, core_->bonds) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    RETURN_IF_ERROR(differing_);
    const std::uint64_t steps = core_->replicas[0]->updater().Step() + 1;
    const bool check = check_every_ != 0 && steps % check_every_ == 0;
    core_->batch.Assign(batch);
    RETURN_IF_ERROR(
        threads_.Run([core = core_, check](std::size_t rank) { return core->Step(rank, check); }));
    if (check) {
      differing_ = CheckHashes(steps);
      RETURN_IF_ERROR(differing_);
    }
    return core_->SumOfLosses();
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    core_->batch.Assign(batch);
    RETURN_IF_ERROR(threads_.Run([core = core_](std::size_t rank) { return core->Loss(rank); }));
    return core_->SumOfLosses();
  }

  std::span<const float> Parameters() const override { return ReplicaParameters(0); }
  std::size_t NumReplicas() const override { return core_->replicas.size(); }
  std::span<const float> ReplicaParameters(std::size_t replica) const override {
    return core_->replicas.at(replica)->Parameters();
  }

  TrainingState State() const override { return core_->replicas[0]->State(); }
  Status Restore(const TrainingState& state) override {
    for (const auto& replica : core_->replicas) {
      RETURN_IF_ERROR(replica->Restore(state));  // all accept the same states
    }
    return OkStatus();
  }

  StepReport Report() const override {
    const Updater& updater = core_->replicas[0]->updater();
    StepReport report = {.steps = updater.Step(),
                         .skipped = updater.Skipped(),
                         .loss_scale = updater.Scale(),
                         .replicas = core_->reports};
    for (std::size_t rank = 0; rank < report.replicas.size(); ++rank) {
      report.replicas[rank].state_bytes = core_->replicas[rank]->StateBytes();
    }
    return report;
  }

 private:
  Status CheckHashes(std::uint64_t step) const {
    const std::vector<std::uint64_t>& hashes = core_->hashes;
    // The odd one out is the one whose bits the fewest share.
    const auto shared_by = [&hashes](std::uint64_t hash) {
      return std::count(hashes.begin(), hashes.end(), hash);
    };
    const auto odd = std::min_element(
        hashes.begin(), hashes.end(),
        [&shared_by](std::uint64_t a, std::uint64_t b) { return shared_by(a) < shared_by(b); });
    if (shared_by(*odd) == static_cast<std::ptrdiff_t>(hashes.size())) {
      return OkStatus();
    }
    return Error(StatusCode::kDataLoss,
                 "replica " + std::to_string(odd - hashes.begin()) + " of " +
                     std::to_string(hashes.size()) +
                     " no longer holds the parameters of the others after step " +
                     std::to_string(step) + "; its device or memory is at fault");
  }

  ModelSpec model_;
  std::uint64_t check_every_;
  Status differing_ = OkStatus();
  std::shared_ptr<Core> core_;  // second owner: a task in progress
  ReplicaThreads threads_;      // last: joined before what they use goes
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeMirrored(const StrategySpec& strategy,
                                                 const TrainingSpec& training,
                                                 std::span<const float> initial) {
  auto core = std::make_shared<Core>(strategy, std::make_shared<ReplicaBonds>(strategy.replicas));
  for (std::size_t rank = 0; rank < strategy.replicas; ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, rank, 1));
    core->replicas.push_back(std::make_unique<Replica>(
        training, WithPulse(std::move(device), core->bonds->pulses[rank]), initial));
  }
  if (strategy.replicas > 1) {
    std::vector<Device*> devices;
    for (const auto& replica : core->replicas) {
      devices.push_back(&replica->device().Innermost());
    }
    ASSIGN_OR_RETURN(core->device_sum, devices[0]->Connect(devices));
    core->buckets = CutIntoBuckets(core->replicas[0]->layout());
  }
  return std::make_unique<Mirrored>(strategy, training, std::move(core));
}

}  // namespace domicile::models
