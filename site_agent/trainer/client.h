// The agent's side of the trainer socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "contracts/plan.h"
#include "models/safetensors.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

class FrameSocket;

// One task. `plan_text` and `grant` are the exact documents.
struct TaskRequest {
  JobId job;
  RoundNumber round = 0;
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  std::string grant;
  std::string plan_text;
  Digest effective_policy;
  Digest base_model;  // of the job's first model, as the grant names it
  Digest model;       // tree digest of model_file
  Bytes model_file;   // safetensors
};

// Per input, in plan order, in units of 2^-scale_bits; each has NumInputs() values.
struct StatisticsNumbers {
  std::vector<std::int64_t> count;
  std::vector<std::int64_t> sum;          // sum(x - a)
  std::vector<std::int64_t> sum_squares;  // sum((x - a)^2)
  // Records between this dataset version and the nearest other one whose statistics the trainer has
  // handed out; empty if there is none. Below `min_cohort`: STAT-DIFFERENCE.
  std::optional<std::uint64_t> records_apart;
};

struct TrainNumbers {
  std::vector<models::NamedTensor> delta;      // trained - received, as the trainer sent them
  std::uint64_t examples = 0;                  // over which the loss is summed
  std::optional<std::int64_t> loss_sum_micro;  // of the model received; empty: not a number
};

struct EvaluationNumbers {
  std::int64_t correct = 0;
  std::vector<std::int64_t> class_counts;  // [classes]
  std::int64_t loss_sum_micro = 0;
  std::vector<std::int64_t> histogram;  // [classes * bins]
};

// What the trainer said, checked for form only: names, lengths. Finiteness, shapes of tensors and
// ranges are the gate's to check.
struct TaskResult {
  std::uint64_t rows =
      0;  // train: distinct rows that steps used, the weight; evaluate: held-out rows
  std::variant<StatisticsNumbers, TrainNumbers, EvaluationNumbers> numbers;
};

// The trainer refused or failed: a code, and how many rows it read and refused.
using TaskOutcome = std::variant<TaskResult, FailedMessage>;

struct TrainerClientOptions {
  std::string socket;
  // The user who must be at the other end; empty: the owner of the socket file.
  std::optional<std::uint32_t> trainer_user;
  std::chrono::milliseconds hello_timeout{5000};
};

// One connection. One thread at a time; a stop token may be stopped from another.
class TrainerClient {
 public:
  // Connects and reads hello. Errors: kUnavailable (nobody listens, or no hello in time),
  // kPermissionDenied (the socket, or another user at the other end), kInvalidArgument (not the
  // protocol, or no common version).
  static StatusOr<TrainerClient> Connect(const TrainerClientOptions& options);

  // What the trainer said about itself when the connection was made.
  const HelloMessage& hello() const { return hello_; }

  // Sends the task and waits for its end. `progress` gets whole per cent, on this thread. A stop
  // asks the trainer to cancel and still waits for its answer (failed, CANCELLED), for at most
  // `cancel_timeout`. Errors, after each of which the client is of no use and must be made anew:
  // kUnavailable (the connection ended), kInvalidArgument (not the protocol, or a result that does
  // not fit the plan; the plan itself), kDeadlineExceeded (no answer to a cancel), kCancelled
  // (stopped while the model was still being sent).
  StatusOr<TaskOutcome> RunTask(
      const TaskRequest& request, const ProgressSink& progress, std::stop_token stop,
      std::chrono::milliseconds cancel_timeout = std::chrono::seconds(10));

  TrainerClient(TrainerClient&&) noexcept;
  TrainerClient& operator=(TrainerClient&&) noexcept;
  ~TrainerClient();

 private:
  TrainerClient(std::unique_ptr<FrameSocket> socket, HelloMessage hello);

  std::unique_ptr<FrameSocket> socket_;
  HelloMessage hello_;
};

}  // namespace domicile::site_agent
