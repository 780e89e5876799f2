// The steps of one round on one strategy: batches, checkpoints, when to stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/plan.h"
#include "models/strategy/strategy.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/trainer/early_stopping.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/model_inputs.h"
#include "site_agent/trainer/round_rows.h"

namespace domicile::site_agent {

// The sum of the losses over these rows, a part of them at once.
StatusOr<double> LossOf(const PreparedModel& prepared, const Rows& rows,
                        std::span<const std::size_t> indices, models::Strategy& strategy);

// Borrowed for as long as the Stepper lives.
struct StepperTask {
  const DatasetAlias& alias;
  const contracts::TrainingPlan& training;
  const PreparedModel& model;
  const Rows& rows;
  const RoundRows& split;
  const TrainOptions& options;
  std::uint64_t steps_in_epoch;  // above 0
  std::uint64_t steps;           // of the round, unless it stops early
};

// One thread at a time.
class Stepper {
 public:
  Stepper(const StepperTask& task, models::Strategy& strategy);

  // Goes on where an earlier attempt at this task has left a checkpoint. Errors: those of files and
  // of the strategy.
  Status Resume();

  // Faults: kCancelled, kTrainerFailed, kNotFinite.
  std::optional<Fault> Run(RoundNumber round);

  // To be sent. Valid as long as the strategy's are.
  std::span<const float> Parameters() const;
  std::uint64_t RowsUsed() const;  // distinct rows that steps to these parameters used
  double InputStall() const { return input_stall_; }
  std::uint64_t EpochsDone() const { return done_ / task_.steps_in_epoch; }
  // 0: the plan does not stop early.
  std::uint64_t BestEpoch() const;
  // What is to be said of it, for the operator. Empty where there is nothing.
  std::string Summary() const;

 private:
  std::optional<Fault> RunFullBatches();
  std::optional<Fault> RunBatches(RoundNumber round);
  bool AtEnd() const { return done_ >= task_.steps || (stopping_ && stopping_->Ended()); }
  void Count(std::span<const std::size_t> rows);
  std::optional<Fault> Step(const models::BatchView& batch);
  // The validation of an epoch; whether it is the best so far.
  Outcome<bool> Validate();
  void Keep(bool at_epoch_end, bool improved);
  void Tell(double loss);
  std::optional<TrainFigures> Figures(double loss) const;

  const StepperTask task_;
  models::Strategy& strategy_;
  const FakeClock still_{WallTime{}};
  const Clock& clock_;

  std::uint64_t done_ = 0;   // steps, those before a checkpoint included
  std::uint64_t first_ = 0;  // step to begin with
  std::vector<bool> seen_;   // of rows
  std::uint64_t rows_ = 0;   // distinct rows that steps used
  double epoch_loss_ = 0;    // of the epoch under way; infinite: some of it was not seen
  std::uint64_t epoch_examples_ = 0;

  std::optional<EarlyStopping> stopping_;
  std::optional<double> validation_;  // the last epoch's
  std::vector<float> best_parameters_;
  std::uint64_t best_rows_ = 0;  // distinct rows that steps to them used

  MonotonicTime start_{};  // of the steps
  std::uint64_t examples_ = 0;
  // For input, so far.
  std::function<std::chrono::nanoseconds()> waited_ = [] { return std::chrono::nanoseconds(0); };
  double input_stall_ = 0;
  std::uint32_t percent_ = 0;
};

}  // namespace domicile::site_agent
