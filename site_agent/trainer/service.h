// The trainer service: tasks of the socket, verified by its own facts and run on its own data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "contracts/dataset.h"
#include "crypto/secret.h"
#include "models/plans/pretrained.h"
#include "models/safetensors.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/vocabulary_files.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/trainer/cluster_tasks.h"
#include "site_agent/trainer/config.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/foreign.h"
#include "site_agent/trainer/server.h"
#include "site_agent/trainer/task_check.h"
#include "site_agent/trainer/use_store.h"
#include "site_agent/trainer/version_store.h"

namespace domicile::site_agent {

// What the process found out about itself before it opened the data.
struct TrainerStart {
  SandboxReport sandbox;
  std::uint32_t canary = 0;  // ways out tried, all shut
  policy::SandboxNetwork network = policy::SandboxNetwork::kNone;
  Digest trainer;  // SHA-256 of the program file, or the digest of `[program]`
};

// Details of failures go to the log of this process (base/log.h), never to the socket.
class TrainerService final : public TaskHandler {
 public:
  // Reads all data; a dataset that cannot be read is logged and not offered. `foreign`
  // trains plans of kind `raw`; without it they fail. To be called in the locked process. The state
  // folder must exist. Errors: kFailedPrecondition (another trainer has
  // the state folder, or others may read its salt), kDataLoss (a salt of another length),
  // kInvalidArgument (a pretrained model or a vocabulary that is none), those of files.
  static StatusOr<std::unique_ptr<TrainerService>> Open(
      const TrainerConfig& config, const std::vector<contracts::DatasetDescription>& descriptions,
      const TrainerStart& start, const Clock& clock, Random& random,
      std::unique_ptr<ForeignTrainer> foreign = nullptr);

  // Train tasks are done with the other hosts of the site from now on. Before the first task; the
  // tasks must outlive the service.
  void SetCluster(ClusterTasks* cluster) { cluster_ = cluster; }

  HelloMessage Hello() const override;
  std::optional<FailedMessage> Admit(const TaskMessage& task, std::uint64_t payload_bytes) override;
  std::variant<ResultMessage, FailedMessage> Run(const TaskMessage& task,
                                                 const ProgressSink& progress,
                                                 std::stop_token stop) override;

 private:
  using Ended = std::variant<ResultMessage, FailedMessage>;

  TrainerService(TrainerConfig config, TrainerStart start, const Clock& clock, FileHandle lock,
                 VersionStore versions, UseStore uses);
  void ReadData(const std::vector<contracts::DatasetDescription>& descriptions);
  Ended RunChecked(const TaskMessage& task, const contracts::Plan& plan,
                   const ProgressSink& progress, std::stop_token stop);
  Ended RunPhase(const TaskMessage& task, const contracts::Plan& plan, const LoadedDataset& data,
                 const std::vector<models::NamedTensor>& model, const ProgressSink& progress,
                 std::stop_token stop);
  // A plan of kind `raw`, by the site's own program.
  Ended RunForeign(const TaskMessage& task, const contracts::Plan& plan, const Table& table,
                   const std::vector<models::NamedTensor>& model, const ProgressSink& progress,
                   std::stop_token stop);
  Ended RunTrain(const TaskMessage& task, const contracts::Plan& plan, const LoadedDataset& data,
                 const std::vector<models::NamedTensor>& model, TrainOptions options);
  bool KeepsCheckpoints(const contracts::Plan& plan) const;
  // Of this very task: those of any other are thrown away. Errors: those of files.
  StatusOr<models::CheckpointStore> OpenCheckpoints(const TaskMessage& task) const;
  // What earlier uses of the grant leave of it.
  policy::Reason CheckUse(const TaskMessage& task);
  // Counts and remembers, before the statistics are handed out. Errors: of the store.
  StatusOr<std::optional<std::uint64_t>> HandOut(const Table& table);

  TrainerConfig config_;
  TrainerStart start_;
  const Clock& clock_;
  FileHandle lock_;
  crypto::SecretBytes salt_;
  std::vector<Table> tables_;
  models::PretrainedModels pretrained_;
  VocabularyFiles vocabularies_;
  OwnFacts own_;
  ClusterTasks* cluster_ = nullptr;  // null: this host alone

  // Of the one task at a time (see TaskHandler).
  VersionStore versions_;
  UseStore uses_;
  std::string loaded_key_;  // alias and schema of `loaded_`
  std::optional<LoadedDataset> loaded_;
  std::string loaded_commitment_;            // of its version, in hexadecimal
  FrozenFeatures features_;                  // of `loaded_`
  std::unique_ptr<ForeignTrainer> foreign_;  // null: none
};

}  // namespace domicile::site_agent
