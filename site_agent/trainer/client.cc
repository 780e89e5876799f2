#include "site_agent/trainer/client.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>

#include "site_agent/trainer/frame_socket.h"

namespace domicile::site_agent {

namespace {

constexpr std::chrono::seconds kStallTimeout(60);

// Who made the listening socket must be who owns its file: a file put there by another user is
// refused.
Status CheckPeer(const FrameSocket& socket, const TrainerClientOptions& options) {
  ucred peer{};
  socklen_t length = sizeof peer;
  struct stat info {};
  if (getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      stat(options.socket.c_str(), &info) != 0) {
    return ErrnoError(errno, "asking who serves `" + options.socket + "`");
  }
  const std::uint32_t wanted = options.trainer_user.value_or(info.st_uid);
  if (peer.uid != wanted) {
    return Error(StatusCode::kPermissionDenied, "`" + options.socket + "` is served by user " +
                                                    std::to_string(peer.uid) + ", not by " +
                                                    std::to_string(wanted));
  }
  return OkStatus();
}

StatusOr<TrainerMessage> ReadMessage(FrameSocket& socket, std::uint64_t max_payload) {
  ASSIGN_OR_RETURN(const FrameHeader header, socket.ReadHeader(max_payload));
  ASSIGN_OR_RETURN(const std::string text, socket.ReadText(header.json_bytes));
  ASSIGN_OR_RETURN(Bytes payload, socket.ReadPayload(header.payload_bytes));
  return DecodeMessage(text, std::move(payload));
}

StatusOr<TaskResult> ToTaskResult(const contracts::Plan& plan, const TaskRequest& request,
                                  ResultMessage message) {
  RETURN_IF_ERROR(CheckResult(plan, request.phase, message));
  TaskResult result;
  result.rows = message.rows;
  std::vector<NamedIntegers>& arrays = message.arrays;
  if (request.phase == contracts::PhaseKind::kStatistics) {
    result.numbers = StatisticsNumbers{std::move(arrays[0].values), std::move(arrays[1].values),
                                       std::move(arrays[2].values), message.records_apart};
  } else if (request.phase == contracts::PhaseKind::kEvaluate) {
    result.numbers = EvaluationNumbers{arrays[0].values[0], std::move(arrays[1].values),
                                       arrays[2].values[0], std::move(arrays[3].values)};
  } else {
    TrainNumbers numbers;
    ASSIGN_OR_RETURN(numbers.delta, models::ParseSafetensors(message.tensors));
    numbers.examples = message.examples;
    numbers.loss_sum_micro = message.loss_sum_micro;
    result.numbers = std::move(numbers);
  }
  return result;
}

// One task on a connection.
class Exchange {
 public:
  Exchange(FrameSocket& socket, const contracts::Plan& plan, const TaskRequest& request)
      : socket_(socket), plan_(plan), request_(request) {}

  StatusOr<TaskOutcome> Run(const ProgressSink& progress, const std::stop_token& stop,
                            const WakeSignal& stopped, std::chrono::milliseconds cancel_timeout) {
    socket_.SetWake(stopped.descriptor());
    RETURN_IF_ERROR(SendTask());
    socket_.SetWake(-1);
    bool cancelled = false;
    auto deadline = std::chrono::steady_clock::time_point::max();
    while (true) {
      const auto wait = cancelled ? std::chrono::ceil<std::chrono::milliseconds>(
                                        deadline - std::chrono::steady_clock::now())
                                  : std::chrono::milliseconds(-1);
      if (cancelled && wait.count() <= 0) {
        return Error(StatusCode::kDeadlineExceeded,
                     "the trainer did not stop its task when it was asked to");
      }
      ASSIGN_OR_RETURN(const Waited waited,
                       socket_.Wait(wait, cancelled ? -1 : stopped.descriptor()));
      if (waited == Waited::kWoken && stop.stop_requested()) {
        cancelled = true;
        deadline = std::chrono::steady_clock::now() + cancel_timeout;
        RETURN_IF_ERROR(socket_.Send(EncodeFrame(CancelMessage{})));
      } else if (waited == Waited::kReadable) {
        RETURN_IF_ERROR(ReadAnswer(progress));
        if (ended_) {
          return std::move(outcome_);
        }
      }
    }
  }

 private:
  Status SendTask() {
    TaskMessage task = {request_.job,        request_.round,     request_.phase,
                        request_.grant,      request_.plan_text, request_.effective_policy,
                        request_.base_model, request_.model,     request_.model_file};
    return socket_.Send(EncodeFrame(task));
  }

  Status ReadAnswer(const ProgressSink& progress) {
    ASSIGN_OR_RETURN(TrainerMessage message,
                     ReadMessage(socket_, MaxResultBytes(plan_, request_.phase)));
    if (const auto* told = std::get_if<ProgressMessage>(&message)) {
      // Never falling: a foreign trainer's jumps would be a channel.
      if (told->percent < last_percent_) {
        return Error(StatusCode::kInvalidArgument, "trainer socket: progress went back");
      }
      last_percent_ = told->percent;
      if (progress) {
        progress(*told);
      }
      return OkStatus();
    }
    ended_ = true;
    if (const auto* failed = std::get_if<FailedMessage>(&message)) {
      outcome_ = *failed;
      return OkStatus();
    }
    if (auto* result = std::get_if<ResultMessage>(&message)) {
      ASSIGN_OR_RETURN(outcome_, ToTaskResult(plan_, request_, std::move(*result)));
      return OkStatus();
    }
    return Error(StatusCode::kInvalidArgument,
                 "trainer socket: a message that does not answer a task");
  }

  FrameSocket& socket_;
  const contracts::Plan& plan_;
  const TaskRequest& request_;
  std::uint32_t last_percent_ = 0;
  bool ended_ = false;
  TaskOutcome outcome_ = FailedMessage{};  // meaningful once it has ended
};

}  // namespace

StatusOr<TrainerClient> TrainerClient::Connect(const TrainerClientOptions& options) {
  ASSIGN_OR_RETURN(FileHandle connected, ConnectUnix(options.socket));
  FrameSocket socket(std::move(connected), options.hello_timeout);
  RETURN_IF_ERROR(CheckPeer(socket, options));
  ASSIGN_OR_RETURN(TrainerMessage message, ReadMessage(socket, 0));
  auto* hello = std::get_if<HelloMessage>(&message);
  if (hello == nullptr) {
    return Error(StatusCode::kInvalidArgument, "trainer socket: the first message is not hello");
  }
  if (std::find(hello->versions.begin(), hello->versions.end(), kTrainerProtocol) ==
      hello->versions.end()) {
    return Error(StatusCode::kInvalidArgument,
                 "trainer socket: this trainer does not speak version " +
                     std::to_string(kTrainerProtocol) +
                     "; install trainer and agent of one version");
  }
  socket.SetStallTimeout(kStallTimeout);
  return TrainerClient(std::make_unique<FrameSocket>(std::move(socket)), *std::move(hello));
}

TrainerClient::TrainerClient(std::unique_ptr<FrameSocket> socket, HelloMessage hello)
    : socket_(std::move(socket)), hello_(std::move(hello)) {}
TrainerClient::TrainerClient(TrainerClient&&) noexcept = default;
TrainerClient& TrainerClient::operator=(TrainerClient&&) noexcept = default;
TrainerClient::~TrainerClient() = default;

StatusOr<TaskOutcome> TrainerClient::RunTask(const TaskRequest& request,
                                             const ProgressSink& progress, std::stop_token stop,
                                             std::chrono::milliseconds cancel_timeout) {
  ASSIGN_OR_RETURN(const contracts::Plan plan, contracts::PlanFromText(request.plan_text));
  ASSIGN_OR_RETURN(const WakeSignal stopped, WakeSignal::Make());
  const std::stop_callback raise(stop, [&] { stopped.Raise(); });
  return Exchange(*socket_, plan, request).Run(progress, stop, stopped, cancel_timeout);
}

}  // namespace domicile::site_agent
