#include "site_agent/trainer/protocol.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"

namespace domicile::site_agent {

namespace {

// Header of a safetensors file: braces and padding, and one entry a tensor (name, shape, offsets).
constexpr std::uint64_t kFileHeaderBytes = 65536;
constexpr std::uint64_t kTensorHeaderBytes = 512;

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

Json HelloJson(const HelloMessage& hello) {
  JsonArray versions(hello.versions.begin(), hello.versions.end());
  JsonArray datasets;
  for (const DatasetFact& fact : hello.datasets) {
    datasets.emplace_back(
        JsonObject{{"alias", fact.alias.text()}, {"commitment", PrintHex(fact.commitment)}});
  }
  JsonArray sandbox;
  for (const SandboxLayer layer : hello.sandbox) {
    sandbox.emplace_back(LayerName(layer));
  }
  Json json = JsonObject{{"type", "hello"},
                         {"versions", std::move(versions)},
                         {"trainer", PrintHex(hello.trainer)},
                         {"datasets", std::move(datasets)},
                         {"sandbox", std::move(sandbox)},
                         {"landlock_abi", hello.landlock_abi},
                         {"canary", hello.canary}};
  if (hello.network != policy::SandboxNetwork::kNone) {
    json.Set("network", policy::Code(hello.network));
  }
  return json;
}

Json ProgressJson(const ProgressMessage& progress) {
  Json json = JsonObject{{"type", "progress"}, {"percent", progress.percent}};
  if (progress.figures) {
    const TrainFigures& figures = *progress.figures;
    json.Set("examples_per_second", figures.examples_per_second);
    if (figures.loss_micro) {
      json.Set("loss_micro", *figures.loss_micro);
    }
    json.Set("stall_permille", figures.stall_permille);
    JsonArray replicas;
    for (const ReplicaFigures& replica : figures.replicas) {
      replicas.emplace_back(JsonArray{replica.communication_permille, replica.state_bytes});
    }
    json.Set("replicas", std::move(replicas));
    if (figures.epochs) {
      json.Set("epochs", *figures.epochs);
    }
    if (figures.validation_micro) {
      json.Set("validation_micro", *figures.validation_micro);
    }
  }
  return json;
}

Json TaskJson(const TaskMessage& task) {
  return JsonObject{{"type", "task"},
                    {"v", kTrainerProtocol},
                    {"job", task.job.text()},
                    {"round", task.round},
                    {"phase", contracts::PhaseName(task.phase)},
                    {"grant", task.grant},
                    {"plan", task.plan},
                    {"policy", PrintHex(task.effective_policy)},
                    {"base_model", PrintHex(task.base_model)},
                    {"model", PrintHex(task.model)}};
}

Json ResultJson(const ResultMessage& result) {
  Json json = JsonObject{
      {"type", "result"}, {"phase", contracts::PhaseName(result.phase)}, {"rows", result.rows}};
  if (result.phase == contracts::PhaseKind::kTrain) {
    json.Set("examples", result.examples);
    if (result.loss_sum_micro) {
      json.Set("loss_sum_micro", *result.loss_sum_micro);
    }
    return json;
  }
  JsonArray arrays;
  for (const NamedIntegers& array : result.arrays) {
    arrays.emplace_back(JsonArray{array.name, static_cast<std::uint64_t>(array.values.size())});
  }
  json.Set("arrays", std::move(arrays));
  if (result.records_apart) {
    json.Set("records_apart", *result.records_apart);
  }
  return json;
}

Json FailedJson(const FailedMessage& failed) {
  return JsonObject{{"type", "failed"},
                    {"reason", static_cast<std::int64_t>(failed.reason)},
                    {"rows_read", failed.rows_read},
                    {"rows_refused", failed.rows_refused}};
}

Bytes ArraysPayload(const ResultMessage& result) {
  Bytes payload;
  for (const NamedIntegers& array : result.arrays) {
    for (const std::int64_t value : array.values) {
      AppendU64(payload, static_cast<std::uint64_t>(value));
    }
  }
  return payload;
}

}  // namespace

StatusOr<FrameHeader> ParseFrameHeader(ByteSpan bytes, std::uint64_t max_payload) {
  DOMICILE_CHECK(bytes.size() >= kFrameHeaderBytes);
  const FrameHeader header = {ReadU32(bytes), ReadU64(bytes.subspan(4))};
  if (header.json_bytes == 0 || header.json_bytes > kMaxMessageJson) {
    return Error(StatusCode::kInvalidArgument,
                 "trainer socket: a message of " + std::to_string(header.json_bytes) +
                     " bytes, not 1 to " + std::to_string(kMaxMessageJson));
  }
  if (header.payload_bytes > max_payload) {
    return Error(StatusCode::kOutOfRange,
                 "trainer socket: a payload of " + std::to_string(header.payload_bytes) +
                     " bytes, the limit is " + std::to_string(max_payload));
  }
  return header;
}

Bytes EncodeFrame(const TrainerMessage& message) {
  const Json json = std::visit(Overloaded{
                                   [](const HelloMessage& m) { return HelloJson(m); },
                                   [](const TaskMessage& m) { return TaskJson(m); },
                                   [](const ProgressMessage& m) -> Json { return ProgressJson(m); },
                                   [](const ResultMessage& m) { return ResultJson(m); },
                                   [](const FailedMessage& m) { return FailedJson(m); },
                                   [](const CancelMessage&) -> Json {
                                     return JsonObject{{"type", "cancel"}};
                                   },
                               },
                               message);
  Bytes numbers;
  ByteSpan payload;
  if (const auto* task = std::get_if<TaskMessage>(&message)) {
    payload = task->model_file;
  } else if (const auto* result = std::get_if<ResultMessage>(&message)) {
    if (result->phase == contracts::PhaseKind::kTrain) {
      payload = result->tensors;
    } else {
      numbers = ArraysPayload(*result);
      payload = numbers;
    }
  }
  const std::string text = PrintJson(json);
  DOMICILE_CHECK(text.size() <= kMaxMessageJson);
  Bytes frame;
  frame.reserve(kFrameHeaderBytes + text.size() + payload.size());
  AppendU32(frame, static_cast<std::uint32_t>(text.size()));
  AppendU64(frame, payload.size());
  frame.insert(frame.end(), text.begin(), text.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

std::vector<ArraySpec> ResultArrays(const contracts::Plan& plan, contracts::PhaseKind phase) {
  const std::uint64_t inputs = plan.NumInputs();
  const std::uint64_t classes = plan.schema.label.NumClasses();
  switch (phase) {
    case contracts::PhaseKind::kNone:
    case contracts::PhaseKind::kTrain:
      return {};
    case contracts::PhaseKind::kStatistics:
      return {{"count", inputs}, {"sum", inputs}, {"sum_squares", inputs}};
    case contracts::PhaseKind::kEvaluate:
      return {{"correct", 1},
              {"class_counts", classes},
              {"loss_sum_micro", 1},
              {"histogram", classes * plan.evaluation.bins}};
  }
  return {};
}

std::uint64_t MaxResultBytes(const contracts::Plan& plan, contracts::PhaseKind phase) {
  if (phase == contracts::PhaseKind::kTrain) {
    return 4 * plan.NumParameters() + kFileHeaderBytes + kTensorHeaderBytes * plan.Tensors().size();
  }
  std::uint64_t bytes = 0;
  for (const ArraySpec& array : ResultArrays(plan, phase)) {
    bytes += 8 * array.length;
  }
  return bytes;
}

std::uint64_t MaxModelBytes(const contracts::Plan& plan) {
  return 4 * (plan.NumParameters() + 2 * plan.NumInputs()) + kFileHeaderBytes +
         kTensorHeaderBytes * (plan.Tensors().size() + 2);
}

Status CheckResult(const contracts::Plan& plan, contracts::PhaseKind phase,
                   const ResultMessage& result) {
  const std::vector<ArraySpec> wanted = ResultArrays(plan, phase);
  const bool fits =
      result.phase == phase &&
      std::equal(wanted.begin(), wanted.end(), result.arrays.begin(), result.arrays.end(),
                 [](const ArraySpec& spec, const NamedIntegers& array) {
                   return spec.name == array.name && spec.length == array.values.size();
                 });
  return fits ? OkStatus()
              : Error(StatusCode::kInvalidArgument,
                      "trainer socket: the result does not have the phase, or the names and "
                      "lengths of numbers, that the plan wants");
}

}  // namespace domicile::site_agent
