// One train phase by a foreign program: what it is given, and what of its answer is believed
// (docs/formats/trainer-program.md).
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "contracts/dataset.h"
#include "contracts/plan.h"
#include "models/safetensors.h"
#include "site_agent/datasets/fault.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/program.h"
#include "site_agent/trainer/program_launcher.h"
#include "site_agent/trainer/progress.h"

namespace domicile::site_agent {

// What a run is about; the plan is of kind `raw`.
struct ForeignTask {
  const contracts::Plan& plan;
  const JobId& job;
  RoundNumber round = 0;
  const contracts::DatasetDescription& data;
  std::uint64_t rows = 0;  // that the dataset has
  std::size_t threads = 1;
};

// One task at a time.
class ForeignTrainer {
 public:
  // `datasets` in the order of their numbers (see PrepareProgram).
  ForeignTrainer(ProgramFolder folder, ProgramLauncher launcher, std::vector<DatasetAlias> datasets,
                 std::uint64_t max_delta_bytes);

  // `model` must hold the plan's tensors. Every number of the result has been read and checked
  // here: names and shapes are the plan's, values finite, counts within the dataset's rows. Faults:
  // kModelShape, kNotFinite, kOutOfRange, kNoExamples, kCancelled, kTrainerFailed.
  Outcome<TrainResult> Train(const ForeignTask& task, const std::vector<models::NamedTensor>& model,
                             const ProgressSink& progress, std::stop_token stop);

 private:
  Status WriteInput(const ForeignTask& task, const std::vector<models::NamedTensor>& model);
  Outcome<TrainResult> ReadAnswer(const ForeignTask& task);

  ProgramFolder folder_;
  ProgramLauncher launcher_;
  std::vector<DatasetAlias> datasets_;
  std::uint64_t max_delta_bytes_;
};

}  // namespace domicile::site_agent
