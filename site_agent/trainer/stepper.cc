#include "site_agent/trainer/stepper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "base/log.h"
#include "models/data/feed.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

constexpr double kNotMeasured = std::numeric_limits<double>::infinity();

// Beyond it batches of rows that lie in memory come no faster.
constexpr std::size_t kMaxFeedThreads = 8;

// Which of these steps, rising, every worker has a checkpoint of. A worker that died may lack the
// others' last one.
StatusOr<std::vector<std::uint64_t>> KeptByAll(models::WorkerGroup& workers,
                                               const std::vector<std::uint64_t>& steps) {
  // In exact pieces of 16 bits: what workers add up are numbers of 24.
  constexpr std::size_t kPieces = 4;
  constexpr std::size_t kMost = 2;  // steps of a worker: what the store keeps
  const std::size_t stride = kMost * kPieces;
  std::vector<float> shared(workers.NumRanks() * stride, 0.0F);
  for (std::size_t i = 0; i < std::min(kMost, steps.size()); ++i) {
    const std::uint64_t step = steps[steps.size() - 1 - i];
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      shared[workers.Rank() * stride + i * kPieces + piece] =
          static_cast<float>(step >> (16 * piece) & 0xFFFFU);
    }
  }
  RETURN_IF_ERROR(workers.AllReduceSum(shared));
  const auto has = [&](std::size_t rank, std::uint64_t wanted) {
    for (std::size_t i = 0; i < kMost; ++i) {
      std::uint64_t step = 0;
      for (std::size_t piece = 0; piece < kPieces; ++piece) {
        step |= static_cast<std::uint64_t>(shared[rank * stride + i * kPieces + piece])
                << (16 * piece);
      }
      if (step == wanted) {
        return true;
      }
    }
    return false;
  };
  std::vector<std::uint64_t> common;
  for (const std::uint64_t step : steps) {
    bool everywhere = true;
    for (std::size_t rank = 0; rank < workers.NumRanks(); ++rank) {
      everywhere = everywhere && has(rank, step);
    }
    if (everywhere) {
      common.push_back(step);
    }
  }
  return common;
}

std::string LossText(double loss) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.6g", loss);
  return text.data();
}

}  // namespace

StatusOr<double> LossOf(const PreparedModel& prepared, const Rows& rows,
                        std::span<const std::size_t> indices, models::Strategy& strategy) {
  const std::size_t at_once = RowsAtOnce(prepared.spec);
  double sum = 0;
  for (std::size_t first = 0; first < indices.size(); first += at_once) {
    const auto part = indices.subspan(first, std::min(at_once, indices.size() - first));
    const RowBatch batch = MakeBatch(prepared, rows, {part.begin(), part.end()});
    ASSIGN_OR_RETURN(const double loss, strategy.Loss(batch.View()));
    sum += loss;
  }
  return sum;
}

Stepper::Stepper(const StepperTask& task, models::Strategy& strategy)
    : task_(task),
      strategy_(strategy),
      clock_(task.options.clock != nullptr ? *task.options.clock : still_),
      seen_(task.rows.NumRows(), false) {
  if (task.training.early_stopping.enabled) {
    stopping_.emplace(task.training.early_stopping);
  }
}

Status Stepper::Resume() {
  const TrainOptions& options = task_.options;
  if (options.checkpoints == nullptr) {
    return OkStatus();
  }
  std::vector<std::uint64_t> kept = options.checkpoints->Steps();
  kept.erase(std::remove_if(kept.begin(), kept.end(),
                            [this](std::uint64_t step) { return step >= task_.steps; }),
             kept.end());
  if (options.strategy.workers != nullptr) {
    ASSIGN_OR_RETURN(kept, KeptByAll(*options.strategy.workers, kept));
  }
  if (kept.empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const models::Checkpoint last, options.checkpoints->At(kept.back()));
  RETURN_IF_ERROR(strategy_.Restore(last.state));
  first_ = last.state.step;
  if (stopping_ && last.stopping.best != 0) {
    ASSIGN_OR_RETURN(models::Checkpoint best, options.checkpoints->At(last.stopping.best));
    best_parameters_ = std::move(best.state.parameters);
    stopping_->Restore(last.stopping, best.loss);
  }
  // Of an epoch that began before, the losses are not known.
  epoch_loss_ = first_ % task_.steps_in_epoch == 0 ? 0 : kNotMeasured;
  LogInfo("training goes on from the checkpoint of step " + std::to_string(first_));
  return OkStatus();
}

std::optional<Fault> Stepper::Run(RoundNumber round) {
  return task_.training.batch == 0 ? RunFullBatches() : RunBatches(round);
}

// All rows in every step.
std::optional<Fault> Stepper::RunFullBatches() {
  const RowBatch all = MakeBatch(task_.model, task_.rows, task_.split.steps);
  Count(all.indices);
  best_rows_ = rows_;
  start_ = clock_.Monotonic();
  for (done_ = first_; !AtEnd();) {
    if (std::optional<Fault> fault = Step(all.View())) {
      return fault;
    }
  }
  return std::nullopt;
}

std::optional<Fault> Stepper::RunBatches(RoundNumber round) {
  models::StagePtr<std::vector<std::size_t>> indices =
      Batches(task_.training, task_.split.steps, round);
  // What the steps before a checkpoint used, without making their batches again.
  for (; done_ < first_; ++done_) {
    Count(*indices->Next());
    if (stopping_ && done_ + 1 == stopping_->State().best) {
      best_rows_ = rows_;
    }
  }
  models::FeedOptions feed;
  feed.limits.max_threads =
      std::clamp<std::size_t>(task_.options.strategy.threads, 1, kMaxFeedThreads);
  feed.limits.memory_bytes = task_.options.input_memory_bytes;
  auto batches = models::Feed<std::vector<std::size_t>, RowBatch>(
      std::move(indices),
      [this](const std::vector<std::size_t>& of_batch) {
        return MakeBatch(task_.model, task_.rows, of_batch);
      },
      [](const RowBatch& batch) { return batch.NumBytes(); }, clock_, feed);
  waited_ = [&batches] { return batches->Report().waited; };
  start_ = clock_.Monotonic();
  while (!AtEnd()) {
    const std::optional<RowBatch> batch = batches->Next();
    DOMICILE_CHECK(batch.has_value());  // an epoch has a batch, and the pipeline repeats
    Count(batch->indices);
    if (std::optional<Fault> fault = Step(batch->View())) {
      return fault;
    }
  }
  const std::chrono::nanoseconds took = clock_.Monotonic() - start_;
  if (took.count() > 0) {
    input_stall_ =
        static_cast<double>(batches->Report().waited.count()) / static_cast<double>(took.count());
  }
  return std::nullopt;
}

void Stepper::Count(std::span<const std::size_t> rows) {
  for (const std::size_t row : rows) {
    rows_ += seen_[row] ? 0 : 1;
    seen_[row] = true;
  }
}

std::optional<Fault> Stepper::Step(const models::BatchView& batch) {
  if (task_.options.stop.stop_requested()) {
    return MakeFault(Reason::kCancelled, task_.alias, "cancelled");
  }
  const StatusOr<double> loss = strategy_.Step(batch);
  if (!loss.ok()) {
    return MakeFault(Reason::kTrainerFailed, task_.alias, std::string(Message(loss.status())));
  }
  // The first step's loss is that of the model received, which may be large without harm.
  if (done_ > 0 && !std::isfinite(*loss)) {
    return MakeFault(Reason::kNotFinite, task_.alias,
                     "training is no longer finite in step " + std::to_string(done_ + 1) +
                         "; the plan's learning rate may be too high");
  }
  ++done_;
  examples_ += batch.NumExamples();
  epoch_loss_ += *loss;
  epoch_examples_ += batch.NumExamples();
  const bool at_epoch_end = done_ % task_.steps_in_epoch == 0;
  bool improved = false;
  if (at_epoch_end && stopping_) {
    const Outcome<bool> best = Validate();
    if (!best.ok()) {
      return best.TheFault();
    }
    improved = *best;
  }
  Tell(*loss / static_cast<double>(batch.NumExamples()));
  Keep(at_epoch_end, improved);
  if (at_epoch_end) {
    epoch_loss_ = 0;
    epoch_examples_ = 0;
  }
  return std::nullopt;
}

Outcome<bool> Stepper::Validate() {
  const std::vector<std::size_t>& held_out = task_.split.validation;
  const StatusOr<double> sum = LossOf(task_.model, task_.rows, held_out, strategy_);
  if (!sum.ok()) {
    return MakeFault(Reason::kTrainerFailed, task_.alias, std::string(Message(sum.status())));
  }
  // INVARIANT: all workers of a group have the same sum, and so decide the same.
  validation_ = *sum / static_cast<double>(held_out.size());
  if (!std::isfinite(*validation_)) {
    return MakeFault(Reason::kNotFinite, task_.alias,
                     "the validation loss is no longer finite after step " + std::to_string(done_) +
                         "; the plan's learning rate may be too high");
  }
  const bool best = stopping_->Note(*validation_, done_);
  if (best) {
    const std::span<const float> parameters = strategy_.Parameters();
    best_parameters_.assign(parameters.begin(), parameters.end());
    best_rows_ = rows_;
  }
  return best;
}

// A checkpoint that cannot be kept costs work after a crash, and nothing else.
void Stepper::Keep(bool at_epoch_end, bool improved) {
  const TrainOptions& options = task_.options;
  if (options.checkpoints == nullptr || AtEnd()) {
    return;
  }
  const std::uint64_t every = options.checkpoint_steps;
  const bool due = every != 0 ? done_ % every == 0 || improved
                              : at_epoch_end && task_.training.local_epochs != 0;
  if (!due) {
    return;
  }
  double loss = kNotMeasured;
  if (at_epoch_end) {
    const double measured =
        stopping_ ? *validation_ : epoch_loss_ / static_cast<double>(epoch_examples_);
    loss = std::isfinite(measured) ? measured : loss;
  }
  const models::Checkpoint checkpoint = {
      .state = strategy_.State(),
      .position = {EpochsDone(), done_ % task_.steps_in_epoch},
      .loss = loss,
      .stopping = stopping_ ? stopping_->State() : models::StoppingState{}};
  if (const Status saved = options.checkpoints->Save(checkpoint); !saved.ok()) {
    LogWarning("no checkpoint after step " + std::to_string(done_) + ": " +
               std::string(Message(saved)));
  }
}

void Stepper::Tell(double loss) {
  const auto percent = AtEnd() ? 100 : static_cast<std::uint32_t>(done_ * 100 / task_.steps);
  if (task_.options.progress && percent != percent_) {
    percent_ = percent;
    task_.options.progress({percent, Figures(loss)});
  }
}

// Of the steps since first_; without a clock there is nothing to tell.
std::optional<TrainFigures> Stepper::Figures(double loss) const {
  const double seconds = std::chrono::duration<double>(clock_.Monotonic() - start_).count();
  if (!(seconds > 0)) {
    return std::nullopt;
  }
  const auto permille = [](double share) {
    return static_cast<std::uint32_t>(std::lround(std::clamp(share, 0.0, 1.0) * 1000));
  };
  TrainFigures figures;
  figures.examples_per_second =
      static_cast<std::uint64_t>(static_cast<double>(examples_) / seconds);
  figures.loss_micro = LossUnits(loss);
  figures.stall_permille = permille(std::chrono::duration<double>(waited_()).count() / seconds);
  for (const models::ReplicaReport& replica : strategy_.Report().replicas) {
    figures.replicas.push_back({permille(replica.CommunicationShare()), replica.state_bytes});
  }
  if (task_.training.local_epochs != 0) {
    figures.epochs = static_cast<std::uint32_t>(EpochsDone());
  }
  if (validation_) {
    figures.validation_micro = LossUnits(*validation_);
  }
  return figures;
}

std::span<const float> Stepper::Parameters() const {
  return stopping_ ? std::span<const float>(best_parameters_) : strategy_.Parameters();
}

std::uint64_t Stepper::RowsUsed() const { return stopping_ ? best_rows_ : rows_; }

std::uint64_t Stepper::BestEpoch() const {
  return stopping_ ? stopping_->State().best / task_.steps_in_epoch : 0;
}

std::string Stepper::Summary() const {
  if (!stopping_) {
    return "";
  }
  return "training ended after epoch " + std::to_string(EpochsDone()) + " of " +
         std::to_string(task_.training.local_epochs) + "; the parameters after epoch " +
         std::to_string(BestEpoch()) + " go on, with the smallest validation loss, " +
         LossText(stopping_->BestLoss());
}

}  // namespace domicile::site_agent
