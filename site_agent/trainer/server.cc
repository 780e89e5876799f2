#include "site_agent/trainer/server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <list>
#include <memory>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/daemon.h"
#include "base/log.h"
#include "base/mutex.h"

namespace domicile::site_agent {

namespace {

using Outcome = std::variant<ResultMessage, FailedMessage>;

// One task at a time over all connections. Thread-safe.
class TaskSlot {
 public:
  bool TryTake() { return !taken_.test_and_set(); }
  void Free() { taken_.clear(); }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

// Gives the slot back.
class HeldSlot {
 public:
  explicit HeldSlot(TaskSlot& slot) : slot_(slot) {}
  ~HeldSlot() { slot_.Free(); }
  HeldSlot(const HeldSlot&) = delete;
  HeldSlot& operator=(const HeldSlot&) = delete;

 private:
  TaskSlot& slot_;
};

// A task on its thread, and what the connection's thread sees of it.
class RunningTask {
 public:
  RunningTask(TaskHandler& handler, TaskMessage task, WakeSignal done)
      : done_(std::move(done)),
        worker_([this, &handler, task = std::move(task)](const std::stop_token& stop) {
          Outcome outcome = handler.Run(
              task, [this](const TaskProgress& progress) { Note(progress); }, stop);
          outcome_ = std::move(outcome);
          done_.Raise();
        }) {}

  int DoneDescriptor() const { return done_.descriptor(); }
  TaskProgress Progress() const {
    const MutexLock lock(mutex_);
    return progress_;
  }
  void Cancel() { worker_.request_stop(); }
  Outcome Join() {
    worker_.join();
    return std::move(outcome_);
  }

 private:
  // Never falling, whatever the work says: an attempt that begins anew shows when it is further.
  void Note(const TaskProgress& progress) {
    const MutexLock lock(mutex_);
    const std::uint32_t percent = std::max(progress_.percent, std::min(progress.percent, 100U));
    progress_ = progress;
    progress_.percent = percent;
  }

  WakeSignal done_;
  mutable Mutex mutex_;
  TaskProgress progress_ GUARDED_BY(mutex_);
  Outcome outcome_ = FailedMessage{};
  std::jthread worker_;  // last: it uses the others
};

// One connection, on its own thread.
class Connection {
 public:
  Connection(FileHandle socket, TaskHandler& handler, const ServeOptions& options, TaskSlot& slot,
             int stop)
      : socket_(std::move(socket), options.stall_timeout, stop),
        handler_(handler),
        options_(options),
        slot_(slot),
        stop_(stop) {}

  // Until the peer goes, breaks the rules, or the server stops.
  Status Serve() {
    RETURN_IF_ERROR(socket_.Send(EncodeFrame(handler_.Hello())));
    while (true) {
      ASSIGN_OR_RETURN(const Waited waited, socket_.Wait(std::chrono::milliseconds(-1), stop_));
      if (waited != Waited::kReadable) {
        return OkStatus();
      }
      RETURN_IF_ERROR(ServeFrame());
    }
  }

 private:
  Status ServeFrame() {
    const StatusOr<FrameHeader> header = socket_.ReadHeader(options_.max_payload);
    if (header.status().code() == StatusCode::kOutOfRange) {
      RETURN_IF_ERROR(Refuse(policy::Reason::kTooLarge));
    }
    RETURN_IF_ERROR(header.status());
    ASSIGN_OR_RETURN(const std::string text, socket_.ReadText(header->json_bytes));
    StatusOr<TrainerMessage> message = DecodeHead(text, header->payload_bytes);
    if (!message.ok()) {
      RETURN_IF_ERROR(Refuse(policy::Reason::kMalformed));
      return message.status();
    }
    if (std::holds_alternative<CancelMessage>(*message)) {
      return OkStatus();  // it crossed with the task's end
    }
    if (auto* task = std::get_if<TaskMessage>(&*message)) {
      return ServeTask(*std::move(task), header->payload_bytes);
    }
    RETURN_IF_ERROR(Refuse(policy::Reason::kMalformed));
    return Error(StatusCode::kInvalidArgument,
                 "trainer socket: a message that only a trainer sends");
  }

  // The slot is free again before the answer goes out: a peer that has it may ask at once.
  Status ServeTask(TaskMessage task, std::uint64_t payload_bytes) {
    std::optional<HeldSlot> held;
    std::optional<FailedMessage> refusal = FailedMessage{policy::Reason::kBusy, 0, 0};
    if (slot_.TryTake()) {
      held.emplace(slot_);
      refusal = handler_.Admit(task, payload_bytes);
    }
    if (refusal) {
      held.reset();
      // Read to the end, or the peer could not read the answer for writing.
      RETURN_IF_ERROR(socket_.SkipPayload(payload_bytes));
      return socket_.Send(EncodeFrame(*refusal));
    }
    ASSIGN_OR_RETURN(task.model_file, socket_.ReadPayload(payload_bytes));
    ASSIGN_OR_RETURN(WakeSignal done, WakeSignal::Make());
    Outcome outcome;
    Status watched;
    {
      RunningTask running(handler_, std::move(task), std::move(done));
      watched = Watch(running);
      if (!watched.ok()) {
        running.Cancel();
      }
      outcome = running.Join();
    }
    held.reset();
    RETURN_IF_ERROR(watched);
    return std::visit([&](const auto& end) { return socket_.Send(EncodeFrame(end)); }, outcome);
  }

  // Until the task has ended. An error: the peer is gone or breaks the rules, or the server stops.
  Status Watch(RunningTask& running) {
    auto next_progress = std::chrono::steady_clock::now() + options_.progress_interval;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          next_progress - std::chrono::steady_clock::now());
      ASSIGN_OR_RETURN(const Waited waited,
                       socket_.Wait(std::max(left, std::chrono::milliseconds(0)), stop_,
                                    running.DoneDescriptor()));
      switch (waited) {
        case Waited::kTimeout:
          RETURN_IF_ERROR(socket_.Send(EncodeFrame(running.Progress())));
          next_progress += options_.progress_interval;
          break;
        case Waited::kReadable:
          RETURN_IF_ERROR(ReadCancel());
          running.Cancel();
          break;
        case Waited::kWoken:
          return Error(StatusCode::kCancelled, "trainer socket: stopped");
        case Waited::kWokenSecond:
          return OkStatus();
      }
    }
  }

  Status ReadCancel() {
    ASSIGN_OR_RETURN(const FrameHeader header, socket_.ReadHeader(0));
    ASSIGN_OR_RETURN(const std::string text, socket_.ReadText(header.json_bytes));
    ASSIGN_OR_RETURN(const TrainerMessage message, DecodeHead(text, 0));
    return std::holds_alternative<CancelMessage>(message)
               ? OkStatus()
               : Error(StatusCode::kInvalidArgument,
                       "trainer socket: only `cancel` may come during a task");
  }

  Status Refuse(policy::Reason reason) {
    return socket_.Send(EncodeFrame(FailedMessage{reason, 0, 0}));
  }

  FrameSocket socket_;
  TaskHandler& handler_;
  const ServeOptions& options_;
  TaskSlot& slot_;
  int stop_;
};

struct ConnectionThread {
  std::atomic<bool> ended = false;
  std::jthread thread;
};

}  // namespace

Status ServeTrainer(const FileHandle& listener, TaskHandler& handler, const ServeOptions& options,
                    std::stop_token stop) {
  ASSIGN_OR_RETURN(const WakeSignal stopped, WakeSignal::Make());
  const std::stop_callback raise(stop, [&] { stopped.Raise(); });
  TaskSlot slot;
  std::list<ConnectionThread> connections;  // destroyed, that is joined, before what they borrow
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> waits = {
        {{listener.descriptor(), POLLIN, 0}, {stopped.descriptor(), POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      return ErrnoError(errno, "trainer socket: waiting for connections");
    }
    connections.remove_if([](const ConnectionThread& c) { return c.ended.load(); });
    if ((waits[0].revents & POLLIN) == 0) {
      continue;
    }
    FileHandle accepted(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.IsOpen() || connections.size() >= options.max_connections) {
      continue;
    }
    ConnectionThread& made = connections.emplace_back();
    made.thread = std::jthread([&made, &handler, &options, &slot, wake = stopped.descriptor(),
                                socket = std::make_unique<FileHandle>(std::move(accepted))] {
      const Status end = Connection(std::move(*socket), handler, options, slot, wake).Serve();
      if (!end.ok() && end.code() != StatusCode::kUnavailable &&
          end.code() != StatusCode::kCancelled) {
        LogWarning("connection closed: " + std::string(Message(end)));
      }
      made.ended = true;
    });
  }
  return OkStatus();
}

Status ServeUntilStopped(const std::function<Status(std::stop_token)>& serve,
                         const std::function<void()>& ready) {
  const Signals signals;
  ready();
  Status served;
  std::jthread server([&](const std::stop_token& stop) {
    served = serve(stop);
    if (!stop.stop_requested()) {
      kill(getpid(), SIGTERM);  // it ended by itself: end the wait below
    }
  });
  while (signals.Wait(std::chrono::hours(1)) == Signals::Asked::kNothing) {
  }
  server.request_stop();
  server.join();
  return served;
}

Status ServeTrainerUntilStopped(const FileHandle& listener, TaskHandler& handler,
                                const ServeOptions& options, const std::function<void()>& ready) {
  return ServeUntilStopped(
      [&](std::stop_token stop) {
        return ServeTrainer(listener, handler, options, std::move(stop));
      },
      ready);
}

}  // namespace domicile::site_agent
