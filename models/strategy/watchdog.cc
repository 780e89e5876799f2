#include "models/strategy/watchdog.h"

#include <algorithm>
#include <new>
#include <string>

#include "base/text.h"

namespace domicile::models {

void Watchdog::Restart(MonotonicTime now, std::span<const Pulse> pulses) {
  looked_ = now;
  for (std::size_t replica = 0; replica < seen_.size(); ++replica) {
    seen_[replica] = {pulses[replica].operations.load(), {}};
  }
}

std::optional<std::size_t> Watchdog::FindHung(MonotonicTime now, std::span<const Pulse> pulses,
                                              std::span<const char> busy) {
  constexpr int kLooks = 10;  // that a silence is made of at least
  const auto passed = std::min<std::chrono::nanoseconds>(now - looked_, patience_ / kLooks);
  looked_ = now;
  std::optional<std::size_t> hung;
  for (std::size_t replica = 0; replica < seen_.size(); ++replica) {
    const std::uint64_t operations = pulses[replica].operations.load();
    if (busy[replica] == 0 || operations != seen_[replica].operations) {
      seen_[replica] = {operations, {}};
      continue;
    }
    seen_[replica].silent += passed;
    if (!hung && seen_[replica].silent > patience_) {
      hung = replica;
    }
  }
  return hung;
}

Status Watchdog::HungError(std::size_t replica, std::span<const Pulse> pulses) const {
  const char* const operation = pulses[replica].operation.load();
  return Error(StatusCode::kUnavailable,
               "replica " + std::to_string(replica) + " of " + std::to_string(seen_.size()) +
                   " has not come out of `" + (operation == nullptr ? "its start" : operation) +
                   "` for " + PrintDouble(std::chrono::duration<double>(patience_).count()) +
                   " s; the others are given up with it");
}

Status Guarded(const std::function<Status()>& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return Error(StatusCode::kUnavailable, "there is no memory left");
  } catch (const std::exception&) {
    return Error(StatusCode::kUnavailable, "a library that it uses has failed");
  }
}

Status ReplicaError(std::size_t replica, std::size_t num_replicas, const Status& status) {
  return Error(StatusCode::kUnavailable, "replica " + std::to_string(replica) + " of " +
                                             std::to_string(num_replicas) +
                                             " has failed: " + std::string(Message(status)));
}

}  // namespace domicile::models
