// Who of several replicas has stopped working.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "models/strategy/replica_devices.h"

namespace domicile::models {

// How long a thread that waits for replicas sleeps between two looks at the clock.
inline constexpr std::chrono::milliseconds kGlance{20};

// A slow replica begins one operation of its device after another; a hung one does not. Silence is
// counted from look to look: where the process itself stood still meanwhile, frozen or starved, the
// replicas could not work either, so no gap between two looks counts for more than a tenth of the
// patience. One thread at a time.
class Watchdog {
 public:
  Watchdog(std::size_t num_replicas, std::chrono::nanoseconds patience)
      : patience_(patience), seen_(num_replicas) {}

  // Forgets how long they have been silent: they begin now.
  void Restart(MonotonicTime now, std::span<const Pulse> pulses);

  // A replica that is busy (not 0) and has begun no operation for longer than the patience.
  std::optional<std::size_t> FindHung(MonotonicTime now, std::span<const Pulse> pulses,
                                      std::span<const char> busy);

  // kUnavailable, naming the replica and the operation it is in.
  Status HungError(std::size_t replica, std::span<const Pulse> pulses) const;

 private:
  struct Seen {
    std::uint64_t operations = 0;
    std::chrono::nanoseconds silent{};
  };

  std::chrono::nanoseconds patience_;
  MonotonicTime looked_{};
  std::vector<Seen> seen_;
};

// What a replica's thread ended with, if `run` throws; else what it returned.
Status Guarded(const std::function<Status()>& run);

// kUnavailable, naming the replica.
Status ReplicaError(std::size_t replica, std::size_t num_replicas, const Status& status);

}  // namespace domicile::models
