// The messages between agent and trainer, to bytes and back; pure (docs/formats/trainer-socket.md).
// Both sides treat the other as hostile: closed objects, bounded lengths, no free text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/plan.h"
#include "policy/language/vocabulary.h"
#include "policy/reason.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/trainer/progress.h"

namespace domicile::site_agent {

inline constexpr std::uint32_t kTrainerProtocol = 1;
inline constexpr std::size_t kFrameHeaderBytes = 12;
inline constexpr std::uint32_t kMaxMessageJson = 4U << 20U;

struct DatasetFact {
  DatasetAlias alias;
  Digest commitment;  // HMAC-SHA-256 under the trainer's salt
  friend bool operator==(const DatasetFact&, const DatasetFact&) = default;
};

struct HelloMessage {
  std::vector<std::uint32_t> versions;
  Digest trainer;  // SHA-256 of the trainer's program file
  std::vector<DatasetFact> datasets;
  std::vector<SandboxLayer> sandbox;
  std::uint32_t landlock_abi = 0;
  std::uint32_t canary = 0;                                        // ways out tried, all shut
  policy::SandboxNetwork network = policy::SandboxNetwork::kNone;  // behind its walls
  friend bool operator==(const HelloMessage&, const HelloMessage&) = default;
};

struct TaskMessage {
  JobId job;
  RoundNumber round = 0;
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  std::string grant;  // the signed note
  std::string plan;   // its exact text
  Digest effective_policy;
  Digest base_model;  // of the job's first model
  Digest model;       // tree digest of `model_file`
  Bytes model_file;   // safetensors; empty until the payload has been read
  friend bool operator==(const TaskMessage&, const TaskMessage&) = default;
};

using ProgressMessage = TaskProgress;

struct NamedIntegers {
  std::string name;  // "count", "sum", "sum_squares", "correct", "class_counts", "loss_sum_micro",
                     // "histogram"
  std::vector<std::int64_t> values;
  friend bool operator==(const NamedIntegers&, const NamedIntegers&) = default;
};

struct ResultMessage {
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  std::uint64_t rows = 0;
  std::uint64_t examples = 0;                  // train: over which the loss is summed
  std::optional<std::int64_t> loss_sum_micro;  // train; absent if not finite
  std::optional<std::uint64_t> records_apart;  // statistics
  Bytes tensors;                               // train: a safetensors file
  std::vector<NamedIntegers> arrays;           // statistics and evaluate
  friend bool operator==(const ResultMessage&, const ResultMessage&) = default;
};

struct FailedMessage {
  policy::Reason reason = policy::Reason::kTrainerFailed;
  std::uint64_t rows_read = 0;
  std::uint64_t rows_refused = 0;
  friend bool operator==(const FailedMessage&, const FailedMessage&) = default;
};

struct CancelMessage {
  friend bool operator==(const CancelMessage&, const CancelMessage&) = default;
};

using TrainerMessage = std::variant<HelloMessage, TaskMessage, ProgressMessage, ResultMessage,
                                    FailedMessage, CancelMessage>;

struct FrameHeader {
  std::uint32_t json_bytes = 0;
  std::uint64_t payload_bytes = 0;
};

// `bytes` are the first kFrameHeaderBytes of a frame. Errors: kInvalidArgument (no JSON, or too
// long), kOutOfRange (a payload beyond `max_payload`); both end the connection.
StatusOr<FrameHeader> ParseFrameHeader(ByteSpan bytes, std::uint64_t max_payload);

// A whole frame. The message must be well formed (a bug of ours otherwise).
Bytes EncodeFrame(const TrainerMessage& message);

// The message of a frame. DecodeHead reads the JSON alone and checks it against the payload length,
// so that a task can be refused before its payload is read: tensors, model_file and arrays' values
// are empty in it. DecodeMessage takes both. Errors: kInvalidArgument, naming field and message;
// never text of the message itself.
StatusOr<TrainerMessage> DecodeHead(std::string_view json, std::uint64_t payload_bytes);
StatusOr<TrainerMessage> DecodeMessage(std::string_view json, Bytes payload);

// What a result of this phase must hold: names and lengths of its arrays, in order; none for train.
struct ArraySpec {
  std::string_view name;
  std::uint64_t length = 0;
};
std::vector<ArraySpec> ResultArrays(const contracts::Plan& plan, contracts::PhaseKind phase);

// The longest payload that a result, or a model, of this plan can need, in bytes.
std::uint64_t MaxResultBytes(const contracts::Plan& plan, contracts::PhaseKind phase);
std::uint64_t MaxModelBytes(const contracts::Plan& plan);

// Whether a result answers a task of this plan: its phase, and the arrays of ResultArrays. Errors:
// kInvalidArgument.
Status CheckResult(const contracts::Plan& plan, contracts::PhaseKind phase,
                   const ResultMessage& result);

}  // namespace domicile::site_agent
