// The trainer's side of the socket: connections, frames, one task at a time, progress at a fixed
// pace, cancelling. What a task means is the handler's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <variant>

#include "base/status.h"
#include "site_agent/trainer/frame_socket.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

// Called by several connection threads, but Admit and Run by one at a time.
class TaskHandler {
 public:
  virtual ~TaskHandler() = default;

  virtual HelloMessage Hello() const = 0;

  // Whether a task may run, before its payload (of that many bytes) is read; a failure refuses it.
  virtual std::optional<FailedMessage> Admit(const TaskMessage& task,
                                             std::uint64_t payload_bytes) = 0;

  // Runs an admitted task, on a thread of its own. `progress` takes whole per cent from any thread.
  virtual std::variant<ResultMessage, FailedMessage> Run(const TaskMessage& task,
                                                         const ProgressSink& progress,
                                                         std::stop_token stop) = 0;
};

struct ServeOptions {
  std::uint64_t max_payload = std::uint64_t{2} << 30U;
  std::chrono::milliseconds progress_interval{1000};
  std::chrono::milliseconds stall_timeout{30000};  // of a peer in the middle of a frame
  std::size_t max_connections = 8;                 // more are closed at once
};

// Serves until `stop`; then cancels the task, closes connections and returns OK. Errors: of the
// listening socket. Call from one thread.
Status ServeTrainer(const FileHandle& listener, TaskHandler& handler, const ServeOptions& options,
                    std::stop_token stop);

// A trainer program's life after its walls are up: `serve` on a thread of its own until SIGTERM,
// SIGINT or SIGHUP (it loads nothing anew) asks it to stop, or until it ends by itself. `ready` is
// told once signals are taken here, before `serve` begins. Returns what `serve` returned. Call
// before the program starts threads.
Status ServeUntilStopped(const std::function<Status(std::stop_token)>& serve,
                         const std::function<void()>& ready);

// The above of ServeTrainer.
Status ServeTrainerUntilStopped(const FileHandle& listener, TaskHandler& handler,
                                const ServeOptions& options, const std::function<void()>& ready);

}  // namespace domicile::site_agent
