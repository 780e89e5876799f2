#include "models/strategy/replica_threads.h"

#include <condition_variable>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace domicile::models {

struct ReplicaThreads::Shared {
  Shared(std::size_t num_replicas, std::shared_ptr<ReplicaBonds> the_bonds)
      : bonds(std::move(the_bonds)), done(num_replicas, 1) {}

  std::shared_ptr<ReplicaBonds> bonds;  // second owner: the strategy

  Mutex mutex;
  ConditionVariable begun;
  ConditionVariable ended;
  std::uint64_t generation GUARDED_BY(mutex) = 0;  // of the task
  bool stop GUARDED_BY(mutex) = false;
  Task task GUARDED_BY(mutex);
  std::vector<char> done GUARDED_BY(mutex);
  std::optional<std::size_t> first_failed GUARDED_BY(mutex);
  Status failure GUARDED_BY(mutex);
  std::size_t num_done GUARDED_BY(mutex) = 0;
};

ReplicaThreads::ReplicaThreads(const StrategySpec& strategy, std::shared_ptr<ReplicaBonds> bonds)
    : clock_(ClockOf(strategy)),
      watchdog_(strategy.replicas, strategy.patience),
      shared_(std::make_shared<Shared>(strategy.replicas, std::move(bonds))) {
  for (std::size_t rank = 0; rank < strategy.replicas; ++rank) {
    threads_.emplace_back([shared = shared_, rank] { Work(shared, rank); });
  }
}

ReplicaThreads::~ReplicaThreads() {
  std::vector<char> done;
  {
    const MutexLock lock(shared_->mutex);
    shared_->stop = true;
    done = shared_->done;
  }
  shared_->begun.notify_all();
  for (std::size_t rank = 0; rank < abandoned_.size(); ++rank) {
    if (abandoned_[rank] != 0 && done[rank] == 0) {
      threads_[rank].detach();  // it hangs in its device, and owns all that it can still touch
    }
  }
}

void ReplicaThreads::Work(const std::shared_ptr<Shared>& shared, std::size_t rank) {
  std::uint64_t seen = 0;
  while (true) {
    Task task;
    {
      const MutexLock lock(shared->mutex);
      while (!shared->stop && shared->generation == seen) {
        shared->begun.wait(shared->mutex);
      }
      if (shared->stop) {
        return;
      }
      seen = shared->generation;
      task = shared->task;
    }
    Status result = Guarded([&task, rank] { return task(rank); });
    task = nullptr;
    {
      const MutexLock lock(shared->mutex);
      if (!result.ok() && !shared->first_failed) {
        // Those that now wait for it in vain fail later.
        shared->first_failed = rank;
        shared->failure = std::move(result);
        shared->bonds->collective.Abort();
      }
      shared->done[rank] = 1;
      ++shared->num_done;
    }
    shared->ended.notify_all();
  }
}

Status ReplicaThreads::Run(Task task) {
  RETURN_IF_ERROR(failure_);
  watchdog_.Restart(clock_.Monotonic(), shared_->bonds->pulses);
  {
    const MutexLock lock(shared_->mutex);
    shared_->task = std::move(task);
    shared_->done.assign(shared_->done.size(), 0);
    shared_->num_done = 0;
    ++shared_->generation;
  }
  shared_->begun.notify_all();
  failure_ = Wait();
  return failure_;
}

Status ReplicaThreads::Wait() {
  const MutexLock lock(shared_->mutex);
  ReplicaBonds& bonds = *shared_->bonds;
  while (shared_->num_done < shared_->done.size()) {
    shared_->ended.wait_for(shared_->mutex, kGlance);
    if (shared_->num_done == shared_->done.size()) {
      break;
    }
    std::vector<char> busy(shared_->done.size());
    for (std::size_t rank = 0; rank < busy.size(); ++rank) {
      busy[rank] = shared_->done[rank] == 0 && !bonds.collective.IsWaiting(rank) ? 1 : 0;
    }
    if (const auto hung = watchdog_.FindHung(clock_.Monotonic(), bonds.pulses, busy)) {
      bonds.collective.Abort();
      abandoned_ = std::move(busy);
      return watchdog_.HungError(*hung, bonds.pulses);
    }
  }
  shared_->task = nullptr;
  if (const std::optional<std::size_t> failed = shared_->first_failed) {
    return ReplicaError(*failed, shared_->done.size(), shared_->failure);
  }
  return OkStatus();
}

}  // namespace domicile::models
