#include "models/strategy/central_storage.h"

#include <utility>
#include <vector>

#include "models/cpu/cpu_device.h"
#include "models/strategy/gradient_maker.h"
#include "models/strategy/owned_batch.h"
#include "models/strategy/replica_threads.h"
#include "models/strategy/slice.h"
#include "models/strategy/updater.h"

namespace domicile::models {
namespace {

// A replica's device and what it needs of the host's values there.
struct Maker {
  Maker(const TrainingSpec& training, std::unique_ptr<Device> device)
      : maker(training, std::move(device)) {}

  // The host's parameters, where the device can read them fast.
  std::span<const float> Fetch(std::span<const float> parameters) {
    Memory& memory = maker.device().memory();
    if (memory.IsHost()) {
      return parameters;
    }
    fetched.ResizeMatrix(1, parameters.size(), memory);
    Copy(memory, parameters, fetched.Values());
    return std::as_const(fetched).Values();
  }
  // The gradient in host memory.
  std::span<float> Deliver() {
    Memory& memory = maker.device().memory();
    if (memory.IsHost()) {
      return maker.Gradient();
    }
    delivered.ResizeMatrix(1, maker.Gradient().size());
    Copy(memory, std::span<const float>(maker.Gradient()), delivered.Values());
    return delivered.Values();
  }

  GradientMaker maker;
  Tensor fetched;
  Tensor delivered;
};

// What the threads work on; a thread that hangs keeps it alive.
struct Core {
  Core(const StrategySpec& strategy, const TrainingSpec& training, std::span<const float> initial)
      : bonds(std::make_shared<ReplicaBonds>(strategy.replicas)),
        clock(ClockOf(strategy)),
        parameters({initial.size()}),
        reports(strategy.replicas),
        gradients(strategy.replicas),
        losses(strategy.replicas),
        host(MakeCpuDevice(strategy.threads)),
        model(training.model, *host),
        frozen(model.Freeze(training.frozen)),
        updater(training, model, *host) {
    std::copy(initial.begin(), initial.end(), parameters.Values().begin());
  }

  std::shared_ptr<ReplicaBonds> bonds;  // second owner: ReplicaThreads
  const Clock& clock;
  Tensor parameters;
  OwnedBatch batch;
  // Each element written by its own thread only, and by the caller between two steps.
  std::vector<std::unique_ptr<Maker>> makers;
  std::vector<ReplicaReport> reports;
  std::vector<std::span<float>> gradients;
  std::vector<double> losses;
  // The caller's alone.
  std::unique_ptr<Device> host;
  Model model;
  std::size_t frozen;
  Updater updater;

  Status ComputeGradient(std::size_t rank, StepPlace place) {
    Maker& maker = *makers[rank];
    ReplicaReport& report = reports[rank];
    StepTimer timer(clock);
    const std::span<const float> here = maker.Fetch(std::as_const(parameters).Values());
    timer.MarkInto(report.communicating);
    const Slice slice = SliceOf(rank, makers.size(), batch.View().NumExamples());
    place.first_example = slice.first;
    losses[rank] = maker.maker.Compute(here, batch.View().Rows(slice.first, slice.count), place);
    RETURN_IF_ERROR(maker.maker.device().Check());
    timer.MarkInto(report.computing);
    gradients[rank] = maker.Deliver();
    RETURN_IF_ERROR(bonds->collective.AllReduceSum(rank, gradients[rank]));
    timer.MarkInto(report.communicating);
    report.examples += slice.count;
    return OkStatus();
  }

  Status ComputeLoss(std::size_t rank) {
    Maker& maker = *makers[rank];
    const Slice slice = SliceOf(rank, makers.size(), batch.View().NumExamples());
    losses[rank] = maker.maker.Loss(maker.Fetch(std::as_const(parameters).Values()),
                                    batch.View().Rows(slice.first, slice.count));
    return maker.maker.device().Check();
  }

  double SumOfLosses() const {
    double sum = 0;
    for (const double loss : losses) {
      sum += loss;
    }
    return sum;
  }
};

class CentralStorage final : public Strategy {
 public:
  CentralStorage(const StrategySpec& strategy, const TrainingSpec& training,
                 std::shared_ptr<Core> core)
      : model_(training.model), core_(std::move(core)), threads_(strategy, core_->bonds) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const std::size_t examples = batch.NumExamples();
    core_->batch.Assign(batch);
    const StepPlace place = core_->updater.Place(examples);
    RETURN_IF_ERROR(threads_.Run(
        [core = core_, place](std::size_t rank) { return core->ComputeGradient(rank, place); }));
    core_->updater.Apply(examples, core_->gradients[0], core_->parameters.Values());
    return core_->SumOfLosses();
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    core_->batch.Assign(batch);
    RETURN_IF_ERROR(
        threads_.Run([core = core_](std::size_t rank) { return core->ComputeLoss(rank); }));
    return core_->SumOfLosses();
  }

  std::span<const float> Parameters() const override {
    return std::as_const(core_->parameters).Values();
  }
  std::size_t NumReplicas() const override { return 1; }
  std::span<const float> ReplicaParameters(std::size_t replica) const override {
    DOMICILE_CHECK(replica == 0);
    return Parameters();
  }

  TrainingState State() const override {
    TrainingState state = core_->updater.State();
    state.parameters.assign(Parameters().begin(), Parameters().end());
    return state;
  }
  Status Restore(const TrainingState& state) override {
    RETURN_IF_ERROR(core_->updater.Restore(state));
    std::copy(state.parameters.begin(), state.parameters.end(), core_->parameters.Values().begin());
    return OkStatus();
  }

  StepReport Report() const override {
    StepReport report = {.steps = core_->updater.Step(),
                         .skipped = core_->updater.Skipped(),
                         .loss_scale = core_->updater.Scale(),
                         .replicas = core_->reports};
    for (std::size_t rank = 0; rank < report.replicas.size(); ++rank) {
      report.replicas[rank].state_bytes = core_->makers[rank]->maker.StateBytes();
    }
    // What the host holds is counted with replica 0.
    report.replicas[0].state_bytes +=
        core_->parameters.NumElements() * sizeof(float) + core_->updater.StateBytes();
    return report;
  }

 private:
  ModelSpec model_;
  std::shared_ptr<Core> core_;  // second owner: a task in progress
  ReplicaThreads threads_;      // last: joined before what they use goes
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeCentralStorage(const StrategySpec& strategy,
                                                       const TrainingSpec& training,
                                                       std::span<const float> initial) {
  auto core = std::make_shared<Core>(strategy, training, initial);
  for (std::size_t rank = 0; rank < strategy.replicas; ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, rank, 1));
    core->makers.push_back(
        std::make_unique<Maker>(training, WithPulse(std::move(device), core->bonds->pulses[rank])));
  }
  return std::make_unique<CentralStorage>(strategy, training, std::move(core));
}

}  // namespace domicile::models
