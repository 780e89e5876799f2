#include "models/strategy/parameter_server.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "models/strategy/gradient_maker.h"
#include "models/strategy/owned_batch.h"
#include "models/strategy/parameter_servers.h"
#include "models/strategy/slice.h"
#include "models/strategy/staleness.h"
#include "models/strategy/updater.h"
#include "models/strategy/watchdog.h"

namespace domicile::models {
namespace {

struct Job {
  bool trains = true;      // false: only the loss
  std::uint64_t step = 0;  // number of the batch
  std::unique_ptr<OwnedBatch> batch;
};

struct Worker {
  Worker(const TrainingSpec& training, std::unique_ptr<Device> device,
         std::span<const float> initial)
      : maker(training, std::move(device)),
        read({initial.size()}),
        parameters({initial.size()}, maker.device().memory()),
        gradient({maker.device().memory().IsHost() ? 0 : initial.size()}) {
    std::copy(initial.begin(), initial.end(), read.Values().begin());
  }

  // The parameters as the servers have them now, in the device's memory.
  void Fetch(ParameterServers& servers) {
    servers.Read(read.Values());
    Copy(parameters.memory(), std::as_const(read).Values(), parameters.Values());
  }
  // The gradient in host memory.
  std::span<const float> Deliver() {
    if (maker.device().memory().IsHost()) {
      return maker.Gradient();
    }
    Copy(maker.device().memory(), std::span<const float>(maker.Gradient()), gradient.Values());
    return std::as_const(gradient).Values();
  }

  GradientMaker maker;
  Tensor read;
  Tensor parameters;
  Tensor gradient;
};

// What the workers' threads share with the caller; a thread that hangs keeps it alive.
struct Core {
  Core(const StrategySpec& strategy, const TrainingSpec& the_training,
       std::span<const float> initial)
      : training(the_training),
        bound(strategy.staleness),
        clock(ClockOf(strategy)),
        pulses(strategy.replicas),
        servers(the_training, strategy.servers, initial),
        loss_scale(FirstLossScale(the_training)),
        busy(strategy.replicas),
        reports(strategy.replicas) {}

  const TrainingSpec training;
  const std::uint64_t bound;
  const Clock& clock;
  std::vector<Pulse> pulses;
  ParameterServers servers;
  std::vector<std::unique_ptr<Worker>> workers;  // each its own thread's

  Mutex mutex;
  ConditionVariable changed;
  bool stop GUARDED_BY(mutex) = false;
  std::deque<Job> jobs GUARDED_BY(mutex);
  std::size_t num_running GUARDED_BY(mutex) = 0;
  std::vector<std::unique_ptr<OwnedBatch>> spare GUARDED_BY(mutex);
  // Of those that have read and are not yet let through, and who they are.
  std::vector<std::uint64_t> versions GUARDED_BY(mutex);
  std::vector<std::size_t> readers GUARDED_BY(mutex);
  std::uint64_t granted GUARDED_BY(mutex) = 0;    // updates let through
  std::uint64_t completed GUARDED_BY(mutex) = 0;  // of them, done at all servers
  LossScale loss_scale GUARDED_BY(mutex);
  std::uint64_t skipped GUARDED_BY(mutex) = 0;
  std::uint64_t greatest_staleness GUARDED_BY(mutex) = 0;
  double loss GUARDED_BY(mutex) = 0;  // of jobs finished and not yet told
  Status failure GUARDED_BY(mutex) = OkStatus();
  std::vector<char> busy GUARDED_BY(mutex);  // computing: not waiting for work or for others
  std::vector<ReplicaReport> reports GUARDED_BY(mutex);

  // A job that may begin now, if it is this worker's turn; with a training job the worker has read.
  std::optional<Job> TryTake(std::size_t rank) REQUIRES(mutex) {
    if (jobs.empty() || (jobs.front().trains && !MayRead(versions, completed, granted, bound))) {
      return std::nullopt;
    }
    Job job = std::move(jobs.front());
    jobs.pop_front();
    ++num_running;
    if (job.trains) {
      versions.push_back(completed);
      readers.push_back(rank);
    }
    return job;
  }

  std::size_t PlaceOfReader(std::size_t rank) REQUIRES(mutex) {
    return static_cast<std::size_t>(std::find(readers.begin(), readers.end(), rank) -
                                    readers.begin());
  }
  void ForgetReader(std::size_t rank) REQUIRES(mutex) {
    const auto place = static_cast<std::ptrdiff_t>(PlaceOfReader(rank));
    readers.erase(readers.begin() + place);
    versions.erase(versions.begin() + place);
  }

  // Waits until this worker's update is let through; returns its number, or nothing at the end.
  std::optional<std::uint64_t> AwaitTurn(std::size_t rank) {
    const MutexLock lock(mutex);
    busy[rank] = 0;
    while (!stop && !MayUpdate(versions, PlaceOfReader(rank), granted, bound)) {
      changed.wait(mutex);
    }
    busy[rank] = 1;
    if (stop) {
      return std::nullopt;
    }
    const std::uint64_t staleness = granted - versions[PlaceOfReader(rank)];
    greatest_staleness = std::max(greatest_staleness, staleness);
    ForgetReader(rank);
    return granted++;
  }

  Status Train(std::size_t rank, const Job& job, double& job_loss) {
    Worker& worker = *workers[rank];
    const BatchView& batch = job.batch->View();
    ReplicaReport spent;
    StepTimer timer(clock);
    worker.Fetch(servers);
    timer.MarkInto(spent.communicating);
    LossScale scale;
    {
      const MutexLock lock(mutex);
      scale = loss_scale;
    }
    const std::span<const float> parameters = std::as_const(worker.parameters).Values();
    job_loss = worker.maker.Compute(parameters, batch,
                                    PlaceOf(training, job.step, batch.NumExamples(), scale));
    const bool ready = MakeReady(training, worker.maker.model(), worker.maker.device(), scale.scale,
                                 parameters, worker.maker.Gradient());
    RETURN_IF_ERROR(worker.maker.device().Check());
    timer.MarkInto(spent.computing);
    if (ready) {
      const std::optional<std::uint64_t> number = AwaitTurn(rank);
      if (!number) {
        return OkStatus();
      }
      changed.notify_all();
      servers.Update(worker.Deliver(), RateShareOf(training, *number), batch.NumExamples());
    }
    timer.MarkInto(spent.communicating);

    const MutexLock lock(mutex);
    if (ready) {
      ++completed;
    } else {
      ForgetReader(rank);
      ++skipped;
    }
    if (training.precision == Precision::kFloat16) {
      loss_scale = NextLossScale(training.loss_scale, loss_scale, !ready);
    }
    reports[rank].examples += batch.NumExamples();
    reports[rank].computing += spent.computing;
    reports[rank].communicating += spent.communicating;
    return OkStatus();
  }

  Status ComputeLoss(std::size_t rank, const Job& job, double& job_loss) {
    Worker& worker = *workers[rank];
    worker.Fetch(servers);
    job_loss = worker.maker.Loss(std::as_const(worker.parameters).Values(), job.batch->View());
    return worker.maker.device().Check();
  }

  void Work(std::size_t rank) {
    while (true) {
      std::optional<Job> job;
      {
        const MutexLock lock(mutex);
        while (!stop && !(job = TryTake(rank))) {
          changed.wait(mutex);
        }
        if (stop) {
          return;
        }
        busy[rank] = 1;
      }
      double job_loss = 0;
      const Status status = Guarded([&] {
        return job->trains ? Train(rank, *job, job_loss) : ComputeLoss(rank, *job, job_loss);
      });
      {
        const MutexLock lock(mutex);
        busy[rank] = 0;
        --num_running;
        loss += job_loss;
        spare.push_back(std::move(job->batch));
        if (!status.ok() && failure.ok()) {
          failure = ReplicaError(rank, workers.size(), status);
          stop = true;
        }
      }
      changed.notify_all();
    }
  }
};

class ParameterServer final : public Strategy {
 public:
  ParameterServer(const StrategySpec& strategy, const TrainingSpec& training,
                  std::shared_ptr<Core> core)
      : model_(training.model),
        core_(std::move(core)),
        watchdog_(strategy.replicas, strategy.patience) {
    for (std::size_t rank = 0; rank < strategy.replicas; ++rank) {
      threads_.emplace_back([shared = core_, rank] { shared->Work(rank); });
    }
  }

  ~ParameterServer() override {
    std::vector<char> busy;
    {
      const MutexLock lock(core_->mutex);
      core_->stop = true;
      busy = core_->busy;
    }
    core_->changed.notify_all();
    for (std::size_t rank = 0; rank < abandoned_.size(); ++rank) {
      if (abandoned_[rank] != 0 && busy[rank] != 0) {
        threads_[rank].detach();  // it hangs in its device, and owns all that it can still touch
      }
    }
  }

  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    // Few wait, so that input is read at the pace of training.
    RETURN_IF_ERROR(AwaitAtMost(2 * threads_.size() - 1));
    Begin(batch, true);
    return TakeLoss();
  }

  StatusOr<double> Finish() override {
    RETURN_IF_ERROR(Drain());
    return TakeLoss();
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    RETURN_IF_ERROR(Drain());
    const double before = TakeLoss();
    for (std::size_t rank = 0; rank < threads_.size(); ++rank) {
      const Slice slice = SliceOf(rank, threads_.size(), batch.NumExamples());
      if (slice.count > 0) {
        Begin(batch.Rows(slice.first, slice.count), false);
      }
    }
    RETURN_IF_ERROR(Drain());
    const double loss = TakeLoss();
    const MutexLock lock(core_->mutex);
    core_->loss = before;  // it is for the next Step or Finish to tell
    return loss;
  }

  std::span<const float> Parameters() const override {
    WaitQuietly();
    return core_->servers.Parameters();
  }
  std::size_t NumReplicas() const override { return 1; }
  std::span<const float> ReplicaParameters(std::size_t replica) const override {
    DOMICILE_CHECK(replica == 0);
    return Parameters();
  }

  TrainingState State() const override {
    WaitQuietly();
    const std::span<const float> parameters = core_->servers.Parameters();
    const MutexLock lock(core_->mutex);
    return {.step = step_,
            .parameters = {parameters.begin(), parameters.end()},
            .optimizer = core_->servers.State(),
            .loss_scale = core_->loss_scale};
  }

  Status Restore(const TrainingState& state) override {
    RETURN_IF_ERROR(CheckState(state, core_->servers.Parameters().size()));
    RETURN_IF_ERROR(Drain());
    RETURN_IF_ERROR(core_->servers.Restore(state.parameters, state.optimizer));
    const MutexLock lock(core_->mutex);
    step_ = state.step;
    core_->granted = core_->completed = state.optimizer.num_steps;
    if (core_->training.precision == Precision::kFloat16) {
      core_->loss_scale = state.loss_scale;
    }
    // The tensors that no server has are read once.
    for (const auto& worker : core_->workers) {
      std::copy(state.parameters.begin(), state.parameters.end(), worker->read.Values().begin());
    }
    return OkStatus();
  }

  StepReport Report() const override {
    WaitQuietly();
    const MutexLock lock(core_->mutex);
    StepReport report = {.steps = step_,
                         .skipped = core_->skipped,
                         .loss_scale = core_->loss_scale.scale,
                         .greatest_staleness = core_->greatest_staleness,
                         .replicas = core_->reports};
    for (std::size_t rank = 0; rank < report.replicas.size(); ++rank) {
      Worker& worker = *core_->workers[rank];
      report.replicas[rank].state_bytes =
          worker.maker.StateBytes() +
          (worker.read.NumElements() + worker.parameters.NumElements()) * sizeof(float);
    }
    // What the servers hold is counted with worker 0.
    report.replicas[0].state_bytes += core_->servers.StateBytes();
    return report;
  }

 private:
  // Waits until no more jobs than that are under way. Errors: kUnavailable: a worker has failed or
  // hangs.
  Status AwaitAtMost(std::size_t most) const {
    Core& core = *core_;
    const MutexLock lock(core.mutex);
    RETURN_IF_ERROR(core.failure);
    watchdog_.Restart(core.clock.Monotonic(), core.pulses);
    while (core.jobs.size() + core.num_running > most) {
      core.changed.wait_for(core.mutex, kGlance);
      RETURN_IF_ERROR(core.failure);
      if (const auto hung = watchdog_.FindHung(core.clock.Monotonic(), core.pulses, core.busy)) {
        abandoned_ = core.busy;
        core.failure = watchdog_.HungError(*hung, core.pulses);
        core.stop = true;
        core.changed.notify_all();
        return core.failure;
      }
    }
    return OkStatus();
  }
  Status Drain() const { return AwaitAtMost(0); }
  // An error is not lost: every later call that can fail gives it again.
  void WaitQuietly() const {
    const Status status = Drain();
    static_cast<void>(status.ok());
  }

  void Begin(const BatchView& batch, bool trains) {
    Job job = {.trains = trains, .step = step_, .batch = nullptr};
    {
      const MutexLock lock(core_->mutex);
      if (!core_->spare.empty()) {
        job.batch = std::move(core_->spare.back());
        core_->spare.pop_back();
      }
    }
    if (job.batch == nullptr) {
      job.batch = std::make_unique<OwnedBatch>();
    }
    job.batch->Assign(batch);
    step_ += trains ? 1 : 0;
    {
      const MutexLock lock(core_->mutex);
      core_->jobs.push_back(std::move(job));
    }
    core_->changed.notify_all();
  }

  double TakeLoss() {
    const MutexLock lock(core_->mutex);
    return std::exchange(core_->loss, 0);
  }

  ModelSpec model_;
  std::shared_ptr<Core> core_;  // second owner: each thread
  std::uint64_t step_ = 0;
  mutable Watchdog watchdog_;
  mutable std::vector<char> abandoned_;  // not 0: it was still busy when one was found hung
  std::vector<std::jthread> threads_;
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeParameterServer(const StrategySpec& strategy,
                                                        const TrainingSpec& training,
                                                        std::span<const float> initial) {
  auto core = std::make_shared<Core>(strategy, training, initial);
  for (std::size_t rank = 0; rank < strategy.replicas; ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, rank, 1));
    core->workers.push_back(std::make_unique<Worker>(
        training, WithPulse(std::move(device), core->pulses[rank]), initial));
  }
  return std::make_unique<ParameterServer>(strategy, training, std::move(core));
}

}  // namespace domicile::models
