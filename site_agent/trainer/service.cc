#include "site_agent/trainer/service.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <sys/stat.h>

#include "base/json.h"
#include "base/log.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"

namespace domicile::site_agent {

namespace {

constexpr std::size_t kSaltBytes = 32;

StatusOr<crypto::SecretBytes> OpenSalt(const std::string& path, Random& random) {
  if (!FileExists(path)) {
    Bytes fresh(kSaltBytes);
    random.Fill(fresh);
    RETURN_IF_ERROR(WriteFileDurably(path, fresh, 0600));
    return crypto::SecretBytes(std::move(fresh));
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return ErrnoError(errno, "reading `" + path + "`");
  }
  if ((info.st_mode & 077) != 0) {
    return Error(StatusCode::kFailedPrecondition,
                 "`" + path +
                     "` may be read by others: with the salt a commitment can be guessed; "
                     "set its mode to 0600");
  }
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kSaltBytes));
  crypto::SecretBytes salt(AsBytes(text));
  crypto::Wipe(text.data(), text.size());
  if (salt.Span().size() != kSaltBytes) {
    return Error(StatusCode::kDataLoss,
                 "`" + path +
                     "` is not the 32 bytes that were written: restore it from a backup, "
                     "or remove it and have the datasets approved anew");
  }
  return salt;
}

FailedMessage ToFailed(const Fault& fault, std::uint64_t rows_read) {
  for (const std::string& line : fault.LocalLines()) {
    LogError(line);
  }
  return {fault.Travels().reason, rows_read, fault.Travels().rows_refused};
}

std::string TaskName(const TaskMessage& task) {
  return "task `" + task.job.text() + "` round " + std::to_string(task.round) + " " +
         std::string(contracts::PhaseName(task.phase));
}

FailedMessage Refuse(policy::Reason reason) { return {reason, 0, 0}; }

ResultMessage ToResult(StatisticsResult statistics) {
  ResultMessage result;
  result.phase = contracts::PhaseKind::kStatistics;
  result.rows = statistics.rows;
  result.arrays = {{"count", std::move(statistics.counts)},
                   {"sum", std::move(statistics.sums)},
                   {"sum_squares", std::move(statistics.squares)}};
  return result;
}

ResultMessage ToResult(const TrainResult& trained) {
  ResultMessage result;
  result.phase = contracts::PhaseKind::kTrain;
  result.rows = trained.rows;
  result.examples = trained.examples;
  result.loss_sum_micro = trained.loss_sum;
  result.tensors = models::PrintSafetensors(trained.delta);
  return result;
}

ResultMessage ToResult(const EvaluateResult& evaluated) {
  ResultMessage result;
  result.phase = contracts::PhaseKind::kEvaluate;
  result.rows = evaluated.examples;
  NamedIntegers histogram = {"histogram", {}};
  for (const std::vector<std::int64_t>& bins : evaluated.histogram) {
    histogram.values.insert(histogram.values.end(), bins.begin(), bins.end());
  }
  result.arrays = {{"correct", {static_cast<std::int64_t>(evaluated.correct)}},
                   {"class_counts", evaluated.class_counts},
                   {"loss_sum_micro", {evaluated.loss_sum}},
                   std::move(histogram)};
  return result;
}

}  // namespace

TrainerService::TrainerService(TrainerConfig config, TrainerStart start, const Clock& clock,
                               FileHandle lock, VersionStore versions, UseStore uses)
    : config_(std::move(config)),
      start_(std::move(start)),
      clock_(clock),
      lock_(std::move(lock)),
      versions_(std::move(versions)),
      uses_(std::move(uses)) {}

StatusOr<std::unique_ptr<TrainerService>> TrainerService::Open(
    const TrainerConfig& config, const std::vector<contracts::DatasetDescription>& descriptions,
    const TrainerStart& start, const Clock& clock, Random& random,
    std::unique_ptr<ForeignTrainer> foreign) {
  ASSIGN_OR_RETURN(FileHandle lock, LockFile(JoinPath(config.state, "lock"), "trainer"));
  RETURN_IF_ERROR(RemoveTemporaries(config.state));
  ASSIGN_OR_RETURN(VersionStore versions,
                   VersionStore::Open(JoinPath(config.state, "versions.sqlite")));
  ASSIGN_OR_RETURN(UseStore uses, UseStore::Open(JoinPath(config.state, "uses.sqlite")));
  std::unique_ptr<TrainerService> service(new TrainerService(config, start, clock, std::move(lock),
                                                             std::move(versions), std::move(uses)));
  ASSIGN_OR_RETURN(service->salt_, OpenSalt(JoinPath(config.state, "salt"), random));
  service->own_ = {config.federation, config.site,       start.trainer, {},
                   config.approval,   config.model_bytes};
  service->foreign_ = std::move(foreign);
  ASSIGN_OR_RETURN(service->pretrained_, models::PretrainedModels::Read(config.pretrained));
  ASSIGN_OR_RETURN(service->vocabularies_, VocabularyFiles::Read(config.vocabularies));
  service->ReadData(descriptions);
  return service;
}

void TrainerService::ReadData(const std::vector<contracts::DatasetDescription>& descriptions) {
  for (const contracts::DatasetDescription& description : descriptions) {
    Outcome<Table> table = ReadTable(description);
    if (!table.ok()) {
      LogError("dataset `" + description.alias.text() + "` cannot be read and is not offered:");
      ToFailed(table.TheFault(), 0);
      continue;
    }
    for (const std::string& notice : table->notices) {
      LogInfo(notice);
    }
    LogInfo("dataset `" + description.alias.text() +
            "`: " + std::to_string(table->records.NumRows()) + " records");
    own_.datasets.push_back({description.alias, Commitment(*table, salt_.Span())});
    tables_.push_back(std::move(*table));
  }
}

HelloMessage TrainerService::Hello() const {
  HelloMessage hello;
  hello.versions = {kTrainerProtocol};
  hello.trainer = start_.trainer;
  hello.datasets = own_.datasets;
  hello.sandbox = start_.sandbox.layers;
  hello.landlock_abi = start_.sandbox.landlock_abi;
  hello.canary = start_.canary;
  hello.network = start_.network;
  return hello;
}

std::optional<FailedMessage> TrainerService::Admit(const TaskMessage& task,
                                                   std::uint64_t payload_bytes) {
  policy::Reason reason = CheckTask(task, payload_bytes, own_, clock_.Now()).reason;
  if (reason == policy::Reason::kNone) {
    reason = CheckUse(task);
  }
  if (reason == policy::Reason::kNone) {
    return std::nullopt;
  }
  LogWarning(TaskName(task) + ": refused, " + std::string(policy::Code(reason)));
  return Refuse(reason);
}

policy::Reason TrainerService::CheckUse(const TaskMessage& task) {
  const std::string denial = JoinPath(config_.denials, task.job.text() + ".deny");
  if (!config_.denials.empty() && FileExists(denial)) {
    // Put into the store: a file that is removed again gives no approval back.
    if (const Status denied = uses_.Deny(task.job); !denied.ok()) {
      LogError(Message(denied));
    }
    return policy::Reason::kApprovalDenied;
  }
  const StatusOr<policy::Reason> reason =
      uses_.Check({.job = task.job, .round = task.round, .phase = task.phase, .model = task.model});
  if (!reason.ok()) {
    LogError(Message(reason.status()));
    return policy::Reason::kTrainerFailed;
  }
  return *reason;
}

std::variant<ResultMessage, FailedMessage> TrainerService::Run(const TaskMessage& task,
                                                               const ProgressSink& progress,
                                                               std::stop_token stop) {
  // Checked again and not passed on from Admit: a grant may have expired while the model arrived.
  TaskCheck check = CheckTask(task, task.model_file.size(), own_, clock_.Now());
  Ended ended = Refuse(check.reason);
  if (check.reason == policy::Reason::kNone) {
    try {
      ended = RunChecked(task, check.plan, progress, std::move(stop));
    } catch (const std::exception& error) {  // out of memory, mostly
      LogError(TaskName(task) + ": " + error.what());
      ended = Refuse(policy::Reason::kTrainerFailed);
    }
  }
  if (const auto* failed = std::get_if<FailedMessage>(&ended)) {
    LogWarning(TaskName(task) + ": failed, " + std::string(policy::Code(failed->reason)));
  } else {
    LogInfo(TaskName(task) + ": done");
  }
  return ended;
}

TrainerService::Ended TrainerService::RunChecked(const TaskMessage& task,
                                                 const contracts::Plan& plan,
                                                 const ProgressSink& progress,
                                                 std::stop_token stop) {
  if (crypto::TreeDigest(task.model_file) != task.model) {
    return Refuse(policy::Reason::kModelDigest);
  }
  StatusOr<std::vector<models::NamedTensor>> model = models::ParseSafetensors(task.model_file);
  if (!model.ok()) {
    LogError("model: " + std::string(Message(model.status())));
    return Refuse(policy::Reason::kModelShape);
  }
  // From here on the grant is used, whatever comes of it.
  policy::Reason use = CheckUse(task);
  if (use == policy::Reason::kNone &&
      !uses_.Remember({task.job, task.round, task.phase, task.model}).ok()) {
    use = policy::Reason::kTrainerFailed;
  }
  if (use != policy::Reason::kNone) {
    return Refuse(use);
  }
  const auto table = std::find_if(tables_.begin(), tables_.end(), [&](const Table& candidate) {
    return candidate.description.alias == plan.dataset;
  });
  DOMICILE_CHECK(table != tables_.end());  // CheckTask has found it
  if (plan.model.kind == contracts::ModelKind::kRaw) {
    return RunForeign(task, plan, *table, *model, progress, std::move(stop));
  }
  std::string key = plan.dataset.text() + " " + PrintJson(contracts::ToJson(plan.schema));
  if (key != loaded_key_) {
    loaded_.reset();  // before the next is built, so that both are never in memory
    loaded_key_.clear();
    features_ = {};
    ReadOptions options;
    options.vocabularies = [this](const Digest& digest) { return vocabularies_.Find(digest); };
    Outcome<LoadedDataset> built = BuildDataset(*table, plan.schema, options);
    if (!built.ok()) {
      return ToFailed(built.TheFault(), table->records.NumRows());
    }
    loaded_ = std::move(*built);
    loaded_commitment_ = PrintHex(Commitment(*table, salt_.Span()));
    loaded_key_ = std::move(key);
  }
  Ended ended = RunPhase(task, plan, *loaded_, *model, progress, std::move(stop));
  auto* result = std::get_if<ResultMessage>(&ended);
  if (result != nullptr && result->phase == contracts::PhaseKind::kStatistics) {
    const StatusOr<std::optional<std::uint64_t>> apart = HandOut(*table);
    if (!apart.ok()) {
      LogError(Message(apart.status()));
      return Refuse(policy::Reason::kTrainerFailed);
    }
    result->records_apart = *apart;
  }
  return ended;
}

TrainerService::Ended TrainerService::RunForeign(const TaskMessage& task,
                                                 const contracts::Plan& plan, const Table& table,
                                                 const std::vector<models::NamedTensor>& model,
                                                 const ProgressSink& progress,
                                                 std::stop_token stop) {
  const std::uint64_t rows = table.records.NumRows();
  if (foreign_ == nullptr) {
    LogError(
        "the plan is of kind `raw`: only a program that `[program]` of trainer.toml names "
        "could train it");
    return Refuse(policy::Reason::kTrainerFailed);
  }
  const Outcome<TrainResult> trained = foreign_->Train(
      {plan, task.job, task.round, table.description, rows, config_.strategy.threads}, model,
      progress, std::move(stop));
  return trained.ok() ? Ended(ToResult(*trained)) : Ended(ToFailed(trained.TheFault(), rows));
}

TrainerService::Ended TrainerService::RunPhase(const TaskMessage& task, const contracts::Plan& plan,
                                               const LoadedDataset& data,
                                               const std::vector<models::NamedTensor>& model,
                                               const ProgressSink& progress, std::stop_token stop) {
  const std::uint64_t rows_read = data.counts.read;
  const auto to_ended = [&](auto outcome) -> Ended {
    return outcome.ok() ? Ended(ToResult(std::move(*outcome)))
                        : Ended(ToFailed(outcome.TheFault(), rows_read));
  };
  switch (task.phase) {
    case contracts::PhaseKind::kNone:
      break;
    case contracts::PhaseKind::kStatistics:
      return to_ended(ComputeStatistics(plan, data));
    case contracts::PhaseKind::kTrain:
      return RunTrain(task, plan, data, model,
                      {.strategy = config_.strategy,
                       .sources = {&pretrained_, &features_},
                       .micro_batch = config_.micro_batch,
                       .precision = config_.precision,
                       .input_memory_bytes = config_.input_memory_bytes,
                       .stop = std::move(stop),
                       .progress = progress,
                       .clock = &clock_});
    case contracts::PhaseKind::kEvaluate:
      return to_ended(Evaluate(plan, data, model, {&pretrained_, &features_}));
  }
  return Refuse(policy::Reason::kMalformed);
}

TrainerService::Ended TrainerService::RunTrain(const TaskMessage& task, const contracts::Plan& plan,
                                               const LoadedDataset& data,
                                               const std::vector<models::NamedTensor>& model,
                                               TrainOptions options) {
  StatusOr<models::CheckpointStore> checkpoints = OpenCheckpoints(task);
  if (checkpoints.ok() && KeepsCheckpoints(plan)) {
    options.checkpoints = &*checkpoints;
    options.checkpoint_steps = config_.checkpoint_steps.value_or(0);
  }
  // What an earlier task left is not kept for longer than until the next.
  const Status opened = options.checkpoints != nullptr || !checkpoints.ok() ? checkpoints.status()
                                                                            : checkpoints->Clear();
  if (!opened.ok()) {
    LogWarning("checkpoints: " + std::string(Message(opened)));
  }
  const int attempts = cluster_ != nullptr ? cluster_->Attempts() : 1;
  for (int attempt = 1; attempt <= attempts && !options.stop.stop_requested(); ++attempt) {
    if (cluster_ != nullptr) {
      const StatusOr<models::WorkerGroup*> group = cluster_->Begin(task, options.stop);
      if (!group.ok()) {
        LogError("cluster: " + std::string(Message(group.status())));
        if (group.status().code() != StatusCode::kUnavailable) {
          break;
        }
        continue;
      }
      options.strategy.workers = *group;
    }
    const Outcome<TrainResult> trained = Train(plan, data, model, task.round, options);
    if (!trained.ok()) {
      FailedMessage failed = ToFailed(trained.TheFault(), data.counts.read);
      // Of the group, as far as can be told here; every other fault is the same on all hosts.
      if (failed.reason == policy::Reason::kTrainerFailed && attempt < attempts) {
        continue;
      }
      return failed;
    }
    ResultMessage result = ToResult(*trained);
    const Status ended =
        cluster_ != nullptr ? cluster_->End(crypto::Sha256(result.tensors)) : OkStatus();
    if (ended.ok()) {
      if (options.checkpoints != nullptr) {
        if (const Status cleared = options.checkpoints->Clear(); !cleared.ok()) {
          LogWarning("checkpoints: " + std::string(Message(cleared)));
        }
      }
      return result;
    }
    LogError("cluster: " + std::string(Message(ended)));
    if (ended.code() == StatusCode::kDataLoss) {
      break;
    }
  }
  return Refuse(options.stop.stop_requested() ? policy::Reason::kCancelled
                                              : policy::Reason::kTrainerFailed);
}

bool TrainerService::KeepsCheckpoints(const contracts::Plan& plan) const {
  if (config_.checkpoint_steps) {
    return *config_.checkpoint_steps != 0;
  }
  // After the last epoch there is nothing to go on to.
  return plan.training.local_epochs > 1 &&
         config_.strategy.kind != models::StrategyKind::kParameterServer;
}

StatusOr<models::CheckpointStore> TrainerService::OpenCheckpoints(const TaskMessage& task) const {
  // Whatever else the numbers of a checkpoint follow from is in the plan or in the configuration.
  Json subject;
  subject.Set("job", task.job.text());
  subject.Set("round", task.round);
  subject.Set("plan", PrintHex(crypto::Sha256(AsBytes(task.plan))));
  subject.Set("model", PrintHex(task.model));
  subject.Set("data", loaded_commitment_);
  subject.Set("strategy", static_cast<std::int64_t>(config_.strategy.kind));
  subject.Set("replicas", static_cast<std::uint64_t>(config_.strategy.replicas));
  subject.Set("micro_batch", static_cast<std::uint64_t>(config_.micro_batch));
  subject.Set("precision", static_cast<std::int64_t>(config_.precision));
  return models::CheckpointStore::Open(JoinPath(config_.state, "checkpoints"),
                                       crypto::Sha256(AsBytes(PrintJson(subject))));
}

StatusOr<std::optional<std::uint64_t>> TrainerService::HandOut(const Table& table) {
  const std::vector<Digest> records = RecordDigests(table, salt_.Span());
  const DatasetAlias& alias = table.description.alias;
  ASSIGN_OR_RETURN(const std::optional<std::uint64_t> apart,
                   versions_.RecordsApart(alias, records));
  RETURN_IF_ERROR(
      versions_.Remember(alias, Commitment(table, salt_.Span()), records, clock_.Now()));
  return apart;
}

}  // namespace domicile::site_agent
