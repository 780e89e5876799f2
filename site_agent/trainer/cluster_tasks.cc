#include "site_agent/trainer/cluster_tasks.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "crypto/key_file.h"
#include "crypto/sha256.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kMaxDescriptionBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMaxAnswerBytes = 4096;
constexpr std::uint64_t kMaxTaskJson = std::uint64_t{kMaxMessageJson} + kFrameHeaderBytes;

StatusOr<crypto::SecretBytes> ReadClusterKey(const std::string& path) {
  ASSIGN_OR_RETURN(const crypto::SecretBytes text, crypto::ReadKeyFile(path));
  std::string_view digits = text.Text();
  if (!digits.empty() && digits.back() == '\n') {
    digits.remove_suffix(1);
  }
  const StatusOr<Bytes> key = ParseHex(digits);
  if (!key.ok() || key->size() != crypto::kPskBytes) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + path + "` must hold 64 hexadecimal digits: `openssl rand -hex 32`");
  }
  return crypto::SecretBytes(*key);
}

std::string RefusedText(policy::Reason reason) {
  return PrintJson(JsonObject{{"reason", std::string(policy::Code(reason))}});
}

StatusOr<std::string> ReadText(std::string_view payload, std::string_view key) {
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(payload));
  JsonReader reader(json, "answer");
  std::string text = reader.String(key);
  RETURN_IF_ERROR(reader.Finish());
  return text;
}

// A task as docs/formats/trainer-socket.md frames it, and nothing after it.
StatusOr<TaskMessage> DecodeTask(const Bytes& frame, std::uint64_t max_payload) {
  const Status bad = Error(StatusCode::kUnavailable, "the chief sent what is no task");
  if (frame.size() < kFrameHeaderBytes) {
    return bad;
  }
  ASSIGN_OR_RETURN(const FrameHeader header,
                   ParseFrameHeader(ByteSpan(frame).first(kFrameHeaderBytes), max_payload));
  const ByteSpan rest = ByteSpan(frame).subspan(kFrameHeaderBytes);
  if (header.json_bytes > rest.size() || header.payload_bytes != rest.size() - header.json_bytes) {
    return bad;
  }
  const ByteSpan payload = rest.subspan(header.json_bytes);
  ASSIGN_OR_RETURN(TrainerMessage message, DecodeMessage(AsText(rest.first(header.json_bytes)),
                                                         Bytes(payload.begin(), payload.end())));
  auto* const task = std::get_if<TaskMessage>(&message);
  if (task == nullptr || task->phase != contracts::PhaseKind::kTrain) {
    return bad;
  }
  return std::move(*task);
}

}  // namespace

StatusOr<ClusterSeat> TakeClusterSeat(const std::string& description_file, const Clock& clock) {
  ClusterSeat seat;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(description_file, kMaxDescriptionBytes));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before the process has a second thread
  const char* const tf_config = std::getenv("TF_CONFIG");
  ASSIGN_OR_RETURN(
      seat.description,
      ParseClusterDescription(text, description_file,
                              tf_config != nullptr ? std::optional(tf_config) : std::nullopt));
  ASSIGN_OR_RETURN(seat.key, ReadClusterKey(seat.description.key_file));
  ASSIGN_OR_RETURN(seat.sockets, OpenClusterSockets(seat.description, clock));
  return seat;
}

Digest DataDigest(std::vector<DatasetFact> datasets) {
  std::sort(datasets.begin(), datasets.end(),
            [](const DatasetFact& a, const DatasetFact& b) { return a.alias < b.alias; });
  std::string lines;
  for (const DatasetFact& dataset : datasets) {
    lines += dataset.alias.text() + " " + PrintHex(dataset.commitment) + "\n";
  }
  return crypto::Sha256(AsBytes(lines));
}

// ---- rank 0 ----

ChiefTasks::ChiefTasks(ClusterSeat& seat, ClusterIdentity identity, const Clock& clock)
    : seat_(seat), identity_(std::move(identity)), clock_(clock) {}

StatusOr<models::WorkerGroup*> ChiefTasks::Begin(const TaskMessage& task, std::stop_token stop) {
  // What is left of a task that failed here would be read as an answer to this one.
  if (std::exchange(in_task_, true)) {
    group_.reset();
  }
  if (group_ == nullptr) {
    LogInfo("waiting for the other workers of the cluster");
    ASSIGN_OR_RETURN(group_, ClusterGroup::Join(seat_.description, seat_.sockets, seat_.key.Span(),
                                                identity_, clock_, stop));
  }
  RETURN_IF_ERROR(PassOn(task, stop));
  return group_.get();
}

Status ChiefTasks::PassOn(const TaskMessage& task, const std::stop_token& stop) {
  const Bytes frame = EncodeFrame(task);
  for (std::size_t rank = 1; rank < group_->NumRanks(); ++rank) {
    RETURN_IF_ERROR(group_->Send(rank, ClusterFrame::kTask, frame));
  }
  Status refused;
  std::vector<std::size_t> ready;
  for (std::size_t rank = 1; rank < group_->NumRanks(); ++rank) {
    ASSIGN_OR_RETURN(const ClusterGroup::Received answer,
                     group_->Receive(rank, kMaxAnswerBytes, seat_.description.silence, stop));
    if (answer.kind == ClusterFrame::kReady) {
      ready.push_back(rank);
      continue;
    }
    const StatusOr<std::string> reason = ReadText(AsText(answer.payload), "reason");
    refused = Error(StatusCode::kPermissionDenied,
                    "worker " + std::to_string(rank) +
                        " refuses the task: " + reason.value_or("it does not say why"));
  }
  const ClusterFrame order = refused.ok() ? ClusterFrame::kBegin : ClusterFrame::kRefused;
  for (const std::size_t rank : ready) {
    RETURN_IF_ERROR(group_->Send(rank, order, {}));
  }
  in_task_ = refused.ok();
  return refused;
}

Status ChiefTasks::End(const Digest& result) {
  for (std::size_t rank = 1; rank < group_->NumRanks(); ++rank) {
    ASSIGN_OR_RETURN(const ClusterGroup::Received answer,
                     group_->Receive(rank, kMaxAnswerBytes, seat_.description.silence, {}));
    const StatusOr<std::string> theirs = ReadText(AsText(answer.payload), "result");
    if (answer.kind != ClusterFrame::kDone || !theirs.ok() || *theirs != PrintHex(result)) {
      return Error(StatusCode::kDataLoss,
                   "worker " + std::to_string(rank) +
                       " ended with other weights: its processor or program differs");
    }
  }
  in_task_ = false;
  return OkStatus();
}

// ---- the others ----

WorkerTasks::WorkerTasks(ClusterSeat& seat, ClusterIdentity identity, const Clock& clock)
    : seat_(seat), identity_(std::move(identity)), clock_(clock) {}

Status WorkerTasks::Serve(TaskHandler& handler, std::uint64_t max_payload,
                          const std::stop_token& stop) {
  StatusOr<std::unique_ptr<ClusterGroup>> joined = ClusterGroup::Join(
      seat_.description, seat_.sockets, seat_.key.Span(), identity_, clock_, stop);
  Status ended = joined.status();
  if (joined.ok()) {
    group_ = *std::move(joined);
    LogInfo("the cluster is whole");
    while (ended.ok()) {
      ended = ServeOne(handler, max_payload, stop);
    }
  }
  return ended.code() == StatusCode::kCancelled ? OkStatus() : ended;
}

Status WorkerTasks::ServeOne(TaskHandler& handler, std::uint64_t max_payload,
                             const std::stop_token& stop) {
  ASSIGN_OR_RETURN(ClusterGroup::Received received,
                   group_->Receive(0, max_payload + kMaxTaskJson, std::nullopt, stop));
  ASSIGN_OR_RETURN(const TaskMessage task, DecodeTask(received.payload, max_payload));
  received = {};
  const auto refuse = [this](policy::Reason reason) {
    return group_->Send(0, ClusterFrame::kRefused, AsBytes(RefusedText(reason)));
  };
  if (const std::optional<FailedMessage> refused = handler.Admit(task, task.model_file.size())) {
    return refuse(refused->reason);
  }
  RETURN_IF_ERROR(group_->Send(0, ClusterFrame::kReady, {}));
  ASSIGN_OR_RETURN(const ClusterGroup::Received begin,
                   group_->Receive(0, kMaxAnswerBytes, seat_.description.rendezvous, stop));
  if (begin.kind == ClusterFrame::kRefused) {
    return OkStatus();  // by another worker: nobody begins
  }
  if (begin.kind != ClusterFrame::kBegin) {
    return Error(StatusCode::kUnavailable, "the chief said something else than to begin");
  }
  const auto ended = handler.Run(
      task, [](const TaskProgress& /*of one of many*/) {}, stop);
  if (const auto* failed = std::get_if<FailedMessage>(&ended)) {
    RETURN_IF_ERROR(refuse(failed->reason));
    return Error(StatusCode::kUnavailable, "the task failed here");
  }
  return OkStatus();
}

StatusOr<models::WorkerGroup*> WorkerTasks::Begin(const TaskMessage& /*task*/,
                                                  std::stop_token /*stop*/) {
  return group_.get();
}

Status WorkerTasks::End(const Digest& result) {
  return group_->Send(0, ClusterFrame::kDone,
                      AsBytes(PrintJson(JsonObject{{"result", PrintHex(result)}})));
}

}  // namespace domicile::site_agent
