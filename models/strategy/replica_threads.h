// The threads of replicas that work in step: one task for all, and an end even if one never comes
// back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "models/strategy/collective.h"
#include "models/strategy/strategy.h"
#include "models/strategy/watchdog.h"

namespace domicile::models {

// What replicas share and a thread that hangs in a device goes on to hold.
struct ReplicaBonds {
  explicit ReplicaBonds(std::size_t num_replicas)
      : pulses(num_replicas), collective(num_replicas) {}

  std::vector<Pulse> pulses;
  SharedMemoryCollective collective;
};

// One thread at a time.
class ReplicaThreads {
 public:
  using Task = std::function<Status(std::size_t rank)>;

  // Of the spec: replicas, patience and clock.
  ReplicaThreads(const StrategySpec& strategy, std::shared_ptr<ReplicaBonds> bonds);
  // A thread that hangs cannot be ended from outside: it is left behind, with what its task holds.
  ~ReplicaThreads();

  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Calls task(rank) in every replica's thread and waits for all. A task must own what it touches,
  // or hold a shared_ptr to it: a thread may be in it after an error. Errors: kUnavailable, naming
  // the replica that failed or hangs; every later call gives the same.
  Status Run(Task task);

 private:
  struct Shared;
  static void Work(const std::shared_ptr<Shared>& shared, std::size_t rank);
  Status Wait();

  const Clock& clock_;
  Watchdog watchdog_;
  Status failure_ = OkStatus();
  std::vector<char> abandoned_;  // not 0: it was still busy when one was found hung
  // Second owner: each thread.
  std::shared_ptr<Shared> shared_;
  std::vector<std::jthread> threads_;
};

}  // namespace domicile::models
