#include "site_agent/trainer/foreign.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "site_agent/trainer/model_inputs.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

constexpr std::uint64_t kMaxAnswerBytes = 4096;

// Emptied in place: the program's right to write is bound to this very file.
Status Empty(const std::string& path) {
  return truncate(path.c_str(), 0) == 0 ? OkStatus() : ErrnoError(errno, "emptying `" + path + "`");
}

Json TensorsJson(const contracts::Plan& plan) {
  JsonArray tensors;
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    tensors.emplace_back(JsonObject{{"name", spec.name},
                                    {"shape", JsonArray(spec.shape.begin(), spec.shape.end())}});
  }
  return tensors;
}

std::string Ended(const ProgramOutcome& outcome) {
  const std::string detail = std::to_string(outcome.detail);
  switch (outcome.end) {
    case ProgramEnd::kNone:
      break;
    case ProgramEnd::kDone:
      return "ended";
    case ProgramEnd::kExitCode:
      return "ended with exit code " + detail;
    case ProgramEnd::kSignal:
      return "was ended by signal " + detail;
    case ProgramEnd::kWallTime:
      return "was ended after `program.limits.wall_seconds`";
    case ProgramEnd::kCancelled:
      return "was cancelled";
    case ProgramEnd::kCouldNotStart:
      return "could not be started";
  }
  return "ended in a way that nobody knows";
}

// The program's tensors in the order of the plan, and nothing but them.
StatusOr<std::vector<models::NamedTensor>> OfPlan(const contracts::Plan& plan,
                                                  std::vector<models::NamedTensor> given) {
  std::vector<models::NamedTensor> ordered;
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    const auto found = std::find_if(given.begin(), given.end(),
                                    [&](const auto& tensor) { return tensor.name == spec.name; });
    if (found == given.end() || found->shape != spec.shape ||
        found->type != models::DataType::kFloat32) {
      return Error(
          StatusCode::kInvalidArgument,
          "the plan's tensor `" + spec.name + "` is missing, has another shape, or is not F32");
    }
    ordered.push_back(std::move(*found));
  }
  if (given.size() != ordered.size()) {
    return Error(StatusCode::kInvalidArgument, "it holds " + std::to_string(given.size()) +
                                                   " tensors where the plan has " +
                                                   std::to_string(ordered.size()));
  }
  return ordered;
}

}  // namespace

ForeignTrainer::ForeignTrainer(ProgramFolder folder, ProgramLauncher launcher,
                               std::vector<DatasetAlias> datasets, std::uint64_t max_delta_bytes)
    : folder_(std::move(folder)),
      launcher_(std::move(launcher)),
      datasets_(std::move(datasets)),
      max_delta_bytes_(max_delta_bytes) {}

Status ForeignTrainer::WriteInput(const ForeignTask& task,
                                  const std::vector<models::NamedTensor>& model) {
  JsonArray data;
  for (const std::string& path : contracts::DataPaths(task.data)) {
    data.emplace_back(std::filesystem::absolute(path).string());
  }
  const std::string text =
      PrintJson(JsonObject{{"answer", folder_.Answer()},
                           {"batch", task.plan.training.batch},
                           {"data", std::move(data)},
                           {"dataset", task.plan.dataset.text()},
                           {"delta", folder_.Delta()},
                           {"job", task.job.text()},
                           {"local_epochs", task.plan.training.local_epochs},
                           {"local_steps", task.plan.training.local_steps},
                           {"model", folder_.Model()},
                           {"round", task.round},
                           {"tensors", TensorsJson(task.plan)},
                           {"threads", static_cast<std::uint64_t>(task.threads)},
                           {"v", 1}});
  RETURN_IF_ERROR(WriteFileDurably(folder_.Task(), AsBytes(text), 0600));
  ASSIGN_OR_RETURN(const std::vector<models::NamedTensor> of_plan, OfPlan(task.plan, model));
  RETURN_IF_ERROR(WriteFileDurably(folder_.Model(), models::PrintSafetensors(of_plan), 0600));
  RETURN_IF_ERROR(Empty(folder_.Delta()));
  return Empty(folder_.Answer());
}

Outcome<TrainResult> ForeignTrainer::ReadAnswer(const ForeignTask& task) {
  const auto fault = [&](Reason reason, const std::string& what) {
    return MakeFault(reason, task.data.alias, "the program's " + what);
  };
  const StatusOr<std::string> text = ReadFile(folder_.Answer(), kMaxAnswerBytes);
  const StatusOr<Json> json = text.ok() ? ParseJson(*text) : text.status();
  if (!json.ok()) {
    return fault(Reason::kTrainerFailed, "answer: " + std::string(Message(json.status())));
  }
  const auto most = static_cast<std::int64_t>(
      std::min<std::uint64_t>(task.rows, static_cast<std::uint64_t>(kLargestJsonInteger)));
  JsonReader reader(*json, "answer");
  reader.Int("v", 1, 1);
  TrainResult result;
  result.rows = static_cast<std::uint64_t>(reader.Int("rows", 0, most));
  result.examples = static_cast<std::uint64_t>(reader.Int("examples", 0, most));
  result.loss_sum = reader.TryInt("loss_sum_micro", -kLargestJsonInteger, kLargestJsonInteger);
  if (const Status read = reader.Finish(); !read.ok()) {
    return fault(Reason::kTrainerFailed, std::string(Message(read)));
  }
  if (result.rows == 0) {
    return fault(Reason::kNoExamples, "answer: no rows");
  }
  const StatusOr<std::string> file =
      ReadFile(folder_.Delta(),
               std::min(max_delta_bytes_, MaxResultBytes(task.plan, contracts::PhaseKind::kTrain)));
  if (!file.ok()) {
    return fault(Reason::kTooLarge, "delta: " + std::string(Message(file.status())));
  }
  StatusOr<std::vector<models::NamedTensor>> tensors = models::ParseSafetensors(AsBytes(*file));
  if (tensors.ok()) {
    tensors = OfPlan(task.plan, *std::move(tensors));
  }
  if (!tensors.ok()) {
    return fault(Reason::kModelShape, "delta: " + std::string(Message(tensors.status())));
  }
  if (const Status finite = models::CheckFinite(*tensors); !finite.ok()) {
    return fault(Reason::kNotFinite, "delta: " + std::string(Message(finite)));
  }
  result.delta = *std::move(tensors);
  return result;
}

Outcome<TrainResult> ForeignTrainer::Train(const ForeignTask& task,
                                           const std::vector<models::NamedTensor>& model,
                                           const ProgressSink& progress, std::stop_token stop) {
  if (const Status written = WriteInput(task, model); !written.ok()) {
    const Reason reason = written.code() == StatusCode::kInvalidArgument ? Reason::kModelShape
                                                                         : Reason::kTrainerFailed;
    return MakeFault(reason, task.data.alias, std::string(Message(written)));
  }
  const auto number = std::find(datasets_.begin(), datasets_.end(), task.data.alias);
  DOMICILE_CHECK(number != datasets_.end());  // the program was prepared for all that are served
  const StatusOr<ProgramOutcome> outcome = launcher_.Run(
      static_cast<std::uint32_t>(number - datasets_.begin()), progress, std::move(stop));
  if (!outcome.ok()) {
    return MakeFault(Reason::kTrainerFailed, task.data.alias,
                     std::string(Message(outcome.status())));
  }
  if (outcome->end != ProgramEnd::kDone) {
    const Reason reason =
        outcome->end == ProgramEnd::kCancelled ? Reason::kCancelled : Reason::kTrainerFailed;
    return MakeFault(reason, task.data.alias,
                     "the program " + Ended(*outcome) + "; see `" + folder_.Log() + "`");
  }
  return ReadAnswer(task);
}

}  // namespace domicile::site_agent
