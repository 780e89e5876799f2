#include "site_agent/egress/trainer_link.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>

#include "base/log.h"

namespace domicile::site_agent {

namespace {

// Between attempts to reach a trainer that does not answer.
constexpr std::chrono::milliseconds kRetry{100};

// Waits, but not past a stop.
void WaitFor(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

Status TrainerLink::Connect() {
  if (client_) {
    return OkStatus();
  }
  TrainerClientOptions options;
  options.socket = socket_;
  ASSIGN_OR_RETURN(TrainerClient client, TrainerClient::Connect(options));
  {
    const MutexLock lock(mutex_);
    facts_ = client.hello();
  }
  client_.emplace(std::move(client));
  return OkStatus();
}

StatusOr<TaskOutcome> TrainerLink::RunTask(const TaskRequest& request, const ProgressSink& progress,
                                           std::chrono::steady_clock::time_point deadline,
                                           std::stop_token stop) {
  while (!stop.stop_requested()) {
    Status failed = Connect();
    if (failed.ok()) {
      StatusOr<TaskOutcome> outcome = client_->RunTask(request, progress, stop);
      if (outcome.ok()) {
        return outcome;
      }
      client_.reset();  // of no use after any error
      failed = outcome.status();
    }
    if (failed.code() != StatusCode::kUnavailable || std::chrono::steady_clock::now() >= deadline) {
      return failed;
    }
    LogWarning("the trainer does not answer, trying again: " + std::string(Message(failed)));
    WaitFor(kRetry, stop);
  }
  return Error(StatusCode::kCancelled, "the task was cancelled");
}

std::optional<HelloMessage> TrainerLink::Facts() const {
  const MutexLock lock(mutex_);
  return facts_;
}

policy::SandboxNetwork NetworkOf(const HelloMessage& hello) {
  constexpr std::array kWalls = {SandboxLayer::kNetworkNamespace, SandboxLayer::kNoNewPrivileges,
                                 SandboxLayer::kLandlock, SandboxLayer::kSystemCalls,
                                 SandboxLayer::kNoCoreFiles};
  const bool all_stand = std::all_of(kWalls.begin(), kWalls.end(), [&](SandboxLayer wall) {
    return std::find(hello.sandbox.begin(), hello.sandbox.end(), wall) != hello.sandbox.end();
  });
  return all_stand ? hello.network : policy::SandboxNetwork::kUnset;
}

}  // namespace domicile::site_agent
