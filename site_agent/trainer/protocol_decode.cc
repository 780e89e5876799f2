// Bytes of the other side to messages.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/json.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

namespace {

constexpr std::int64_t kLargest = kLargestJsonInteger;
constexpr std::array<std::string_view, 7> kArrayNames = {
    "count", "sum", "sum_squares", "correct", "class_counts", "loss_sum_micro", "histogram"};

Digest ReadDigest(JsonReader& reader, std::string_view key) {
  StatusOr<Digest> digest = ParseDigest(reader.String(key));
  if (!digest.ok()) {
    reader.Fail(key, "is not 64 lower-case hexadecimal digits");
    return {};
  }
  return *digest;
}

std::uint64_t ReadCount(JsonReader& reader, std::string_view key) {
  return static_cast<std::uint64_t>(reader.Int(key, 0, kLargest));
}

contracts::PhaseKind ReadPhase(JsonReader& reader) {
  const std::string name = reader.String("phase");
  for (const auto phase : {contracts::PhaseKind::kStatistics, contracts::PhaseKind::kTrain,
                           contracts::PhaseKind::kEvaluate}) {
    if (contracts::PhaseName(phase) == name) {
      return phase;
    }
  }
  reader.Fail("phase", "is not `statistics`, `train` or `evaluate`");
  return contracts::PhaseKind::kNone;
}

StatusOr<TrainerMessage> ReadHello(JsonReader& reader) {
  HelloMessage hello;
  for (const Json& version : reader.Array("versions")) {
    const std::int64_t* number = version.TryInt();
    if (number == nullptr || *number < 1 || *number > 1000) {
      reader.Fail("versions", "must hold whole numbers from 1 to 1000");
      break;
    }
    hello.versions.push_back(static_cast<std::uint32_t>(*number));
  }
  hello.trainer = ReadDigest(reader, "trainer");
  for (const Json& item : reader.Array("datasets")) {
    JsonReader dataset(item, "hello.datasets");
    DatasetFact fact;
    const StatusOr<DatasetAlias> alias = DatasetAlias::Parse(dataset.String("alias"));
    if (alias.ok()) {
      fact.alias = *alias;
    } else {
      dataset.Fail("alias", "is no dataset alias");
    }
    fact.commitment = ReadDigest(dataset, "commitment");
    reader.Merge(dataset.Finish());
    hello.datasets.push_back(std::move(fact));
  }
  for (const std::string& name : reader.Strings("sandbox")) {
    const std::optional<SandboxLayer> layer = LayerFromName(name);
    if (!layer) {
      reader.Fail("sandbox", "holds a name that is not in the list of walls");
      break;
    }
    hello.sandbox.push_back(*layer);
  }
  hello.landlock_abi = static_cast<std::uint32_t>(reader.Int("landlock_abi", 0, 1000));
  hello.canary = static_cast<std::uint32_t>(reader.Int("canary", 0, 1'000'000));
  if (const std::optional<std::string> network = reader.TryString("network")) {
    hello.network = *network == policy::Code(policy::SandboxNetwork::kLoopback)
                        ? policy::SandboxNetwork::kLoopback
                        : policy::SandboxNetwork::kSiteCluster;
    if (*network != policy::Code(hello.network)) {
      reader.Fail("network", "is there only where it is `loopback` or `site_cluster`");
    }
  }
  RETURN_IF_ERROR(reader.Finish());
  return TrainerMessage(std::move(hello));
}

StatusOr<TrainerMessage> ReadProgress(JsonReader& reader) {
  constexpr std::int64_t kWhole = 1000;  // per mille
  ProgressMessage progress;
  progress.percent = static_cast<std::uint32_t>(reader.Int("percent", 0, 100));
  if (!reader.Has("examples_per_second")) {
    RETURN_IF_ERROR(reader.Finish());
    return TrainerMessage(std::move(progress));
  }
  TrainFigures figures;
  figures.examples_per_second =
      static_cast<std::uint64_t>(reader.Int("examples_per_second", 0, kLargestJsonInteger));
  figures.loss_micro = reader.TryInt("loss_micro", -kLargestJsonInteger, kLargestJsonInteger);
  figures.stall_permille = static_cast<std::uint32_t>(reader.Int("stall_permille", 0, kWhole));
  const JsonArray& replicas = reader.Array("replicas");
  if (replicas.size() > kMaxReplicaFigures) {
    reader.Fail("replicas", "holds too many");
  }
  for (const Json& replica : replicas) {
    const JsonArray* const pair = replica.TryArray();
    const std::int64_t* const share =
        pair != nullptr && pair->size() == 2 ? (*pair)[0].TryInt() : nullptr;
    const std::int64_t* const bytes = share != nullptr ? (*pair)[1].TryInt() : nullptr;
    if (bytes == nullptr || *share < 0 || *share > kWhole || *bytes < 0) {
      reader.Fail("replicas", "must hold pairs of a share per mille and a number of bytes");
      break;
    }
    figures.replicas.push_back(
        {static_cast<std::uint32_t>(*share), static_cast<std::uint64_t>(*bytes)});
  }
  if (const auto epochs = reader.TryInt("epochs", 0, std::numeric_limits<std::uint32_t>::max())) {
    figures.epochs = static_cast<std::uint32_t>(*epochs);
  }
  figures.validation_micro =
      reader.TryInt("validation_micro", -kLargestJsonInteger, kLargestJsonInteger);
  RETURN_IF_ERROR(reader.Finish());
  progress.figures = std::move(figures);
  return TrainerMessage(std::move(progress));
}

StatusOr<TrainerMessage> ReadTask(JsonReader& reader) {
  TaskMessage task;
  reader.Int("v", kTrainerProtocol, kTrainerProtocol);
  const StatusOr<JobId> job = JobId::Parse(reader.String("job"));
  if (job.ok()) {
    task.job = *job;
  } else {
    reader.Fail("job", "is no job name");
  }
  task.round = static_cast<RoundNumber>(reader.Int("round", 1, UINT32_MAX));
  task.phase = ReadPhase(reader);
  task.grant = reader.String("grant");
  task.plan = reader.String("plan");
  task.effective_policy = ReadDigest(reader, "policy");
  task.base_model = ReadDigest(reader, "base_model");
  task.model = ReadDigest(reader, "model");
  RETURN_IF_ERROR(reader.Finish());
  return TrainerMessage(std::move(task));
}

// [["count", 13], ...]: names from the closed list, each once, and their lengths.
void ReadArrays(JsonReader& reader, std::uint64_t payload_bytes, ResultMessage& result,
                std::vector<std::uint64_t>& lengths) {
  std::uint64_t left = payload_bytes / 8;
  for (const Json& item : reader.Array("arrays")) {
    const JsonArray* pair = item.TryArray();
    const std::string* name =
        pair != nullptr && pair->size() == 2 ? pair->front().TryString() : nullptr;
    const std::int64_t* length = name != nullptr ? pair->back().TryInt() : nullptr;
    if (length == nullptr || *length < 0 ||
        std::find(kArrayNames.begin(), kArrayNames.end(), *name) == kArrayNames.end() ||
        std::any_of(result.arrays.begin(), result.arrays.end(),
                    [&](const NamedIntegers& array) { return array.name == *name; })) {
      reader.Fail("arrays", "must hold pairs of a known name, each once, and a length");
      return;
    }
    if (static_cast<std::uint64_t>(*length) > left) {
      reader.Fail("arrays", "is longer than the payload");
      return;
    }
    left -= static_cast<std::uint64_t>(*length);
    lengths.push_back(static_cast<std::uint64_t>(*length));
    result.arrays.push_back({*name, {}});
  }
  if (left != 0 || payload_bytes % 8 != 0) {
    reader.Fail("arrays", "is shorter than the payload");
  }
}

StatusOr<TrainerMessage> ReadResult(JsonReader& reader, std::uint64_t payload_bytes,
                                    std::vector<std::uint64_t>& lengths) {
  ResultMessage result;
  result.phase = ReadPhase(reader);
  result.rows = ReadCount(reader, "rows");
  if (result.phase == contracts::PhaseKind::kTrain) {
    result.examples = ReadCount(reader, "examples");
    result.loss_sum_micro = reader.TryInt("loss_sum_micro", -kLargest, kLargest);
  } else {
    ReadArrays(reader, payload_bytes, result, lengths);
  }
  if (result.phase == contracts::PhaseKind::kStatistics) {
    if (const auto apart = reader.TryInt("records_apart", 0, kLargest)) {
      result.records_apart = static_cast<std::uint64_t>(*apart);
    }
  }
  RETURN_IF_ERROR(reader.Finish());
  return TrainerMessage(std::move(result));
}

StatusOr<TrainerMessage> ReadFailed(JsonReader& reader) {
  FailedMessage failed;
  const auto reason =
      policy::ReasonFromNumber(static_cast<std::uint32_t>(reader.Int("reason", 1, 65535)));
  failed.reason = reason.value_or(policy::Reason::kNone);
  failed.rows_read = ReadCount(reader, "rows_read");
  failed.rows_refused = ReadCount(reader, "rows_refused");
  if (failed.reason == policy::Reason::kNone) {
    reader.Fail("reason", "is not in the list of reason codes");
  }
  RETURN_IF_ERROR(reader.Finish());
  return TrainerMessage(failed);
}

// `lengths` gets those of a result's arrays, whose values are in the payload.
StatusOr<TrainerMessage> ReadHead(std::string_view text, std::uint64_t payload_bytes,
                                  std::vector<std::uint64_t>& lengths) {
  StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) {
    return Annotate(json.status(), "trainer socket");
  }
  const Json* type_value = json->Find("type");
  const std::string* type = type_value == nullptr ? nullptr : type_value->TryString();
  if (type == nullptr) {
    return Error(StatusCode::kInvalidArgument, "trainer socket: a message without `type`");
  }
  const bool may_carry = *type == "task" || *type == "result";
  if (!may_carry && payload_bytes != 0) {
    return Error(StatusCode::kInvalidArgument, "trainer socket: a payload where none belongs");
  }
  JsonReader reader(*json, "trainer message");
  reader.String("type");
  if (*type == "hello") {
    return ReadHello(reader);
  }
  if (*type == "task") {
    return ReadTask(reader);
  }
  if (*type == "progress") {
    return ReadProgress(reader);
  }
  if (*type == "result") {
    return ReadResult(reader, payload_bytes, lengths);
  }
  if (*type == "failed") {
    return ReadFailed(reader);
  }
  if (*type == "cancel") {
    RETURN_IF_ERROR(reader.Finish());
    return TrainerMessage(CancelMessage{});
  }
  return Error(StatusCode::kInvalidArgument, "trainer socket: a message of unknown `type`");
}

}  // namespace

StatusOr<TrainerMessage> DecodeHead(std::string_view json, std::uint64_t payload_bytes) {
  std::vector<std::uint64_t> lengths;
  return ReadHead(json, payload_bytes, lengths);
}

StatusOr<TrainerMessage> DecodeMessage(std::string_view json, Bytes payload) {
  std::vector<std::uint64_t> lengths;
  StatusOr<TrainerMessage> message = ReadHead(json, payload.size(), lengths);
  if (!message.ok()) {
    return message;
  }
  if (auto* task = std::get_if<TaskMessage>(&*message)) {
    task->model_file = std::move(payload);
  } else if (auto* result = std::get_if<ResultMessage>(&*message)) {
    if (result->phase == contracts::PhaseKind::kTrain) {
      result->tensors = std::move(payload);
    }
    ByteSpan left = payload;
    for (std::size_t i = 0; i < result->arrays.size(); ++i) {
      std::vector<std::int64_t>& values = result->arrays[i].values;
      values.reserve(lengths[i]);
      for (std::uint64_t n = 0; n < lengths[i]; ++n) {
        values.push_back(static_cast<std::int64_t>(ReadU64(left)));
        left = left.subspan(8);
      }
    }
  }
  return message;
}

}  // namespace domicile::site_agent
