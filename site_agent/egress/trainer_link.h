// The agent's connection to the trainer service: made when needed, made again when it was lost.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "policy/language/vocabulary.h"
#include "site_agent/trainer/client.h"

namespace domicile::site_agent {

// Connect and RunTask: one thread at a time. Facts: any thread.
class TrainerLink {
 public:
  explicit TrainerLink(std::string socket) : socket_(std::move(socket)) {}

  // Connects if there is no connection, and reads what the trainer says of itself. Errors: those of
  // TrainerClient::Connect.
  Status Connect();

  // Runs a task, connecting first. A connection that is lost is made again, and the task begun
  // again, until `deadline`: a trainer that was killed and started again does the work anew, and
  // nothing of it had left. Errors: kUnavailable (no trainer before the deadline), kCancelled,
  // kInvalidArgument (it does not speak the protocol).
  StatusOr<TaskOutcome> RunTask(const TaskRequest& request, const ProgressSink& progress,
                                std::chrono::steady_clock::time_point deadline,
                                std::stop_token stop);

  // What the trainer last said of itself; empty before the first connection.
  std::optional<HelloMessage> Facts() const;

 private:
  const std::string socket_;
  std::optional<TrainerClient> client_;
  mutable Mutex mutex_;
  std::optional<HelloMessage> facts_ GUARDED_BY(mutex_);
};

// What the trainer's sandbox reaches: kNone if all its walls stand, kUnset (there is no sandbox to
// speak of) if one is missing.
policy::SandboxNetwork NetworkOf(const HelloMessage& hello);

}  // namespace domicile::site_agent
