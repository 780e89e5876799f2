#include "site_agent/trainer/execute.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "models/data/feed.h"
#include "models/data/pipeline.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/model_inputs.h"
#include "site_agent/trainer/work.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

// Neumaier's sum: the error does not grow with the number of rows.
class CompensatedSum {
 public:
  void Add(double value) {
    const double next = sum_ + value;
    lost_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  double Value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

std::optional<Fault> CheckData(const contracts::Plan& plan, const LoadedDataset& data) {
  if (data.input_names != plan.schema.InputNames() ||
      data.num_classes != plan.schema.label.NumClasses() || !Fits(plan, data.training)) {
    return MakeFault(Reason::kModelShape, data.alias,
                     "the dataset was not built for the inputs and classes of this plan");
  }
  if (data.training.NumRows() == 0) {
    return MakeFault(Reason::kNoExamples, data.alias, "the dataset has no training rows");
  }
  return std::nullopt;
}

// The steps of one round over so many rows; 0 where no batch would be full.
std::uint64_t StepsOf(const contracts::TrainingPlan& training, std::uint64_t rows) {
  std::uint64_t in_epoch = 1;
  if (training.batch != 0) {
    in_epoch = rows / training.batch;
    const bool keeps = training.last_batch != contracts::LastBatch::kDrop;
    in_epoch += keeps && rows % training.batch != 0 ? 1 : 0;
  }
  if (in_epoch == 0) {
    return 0;
  }
  return training.local_epochs != 0 ? training.local_epochs * in_epoch : training.local_steps;
}

// The order of rows differs from round to round, and is the same for a round done again.
std::uint64_t ShuffleSeed(const contracts::Plan& plan, RoundNumber round) {
  SeededRandom mixer(plan.training.shuffle_seed);
  return mixer.Next64() + round;
}

// The batches of a round, in the order of the plan; without end.
models::StagePtr<std::vector<std::size_t>> Batches(const contracts::Plan& plan,
                                                   std::size_t num_rows, RoundNumber round) {
  const contracts::TrainingPlan& training = plan.training;
  models::StagePtr<std::size_t> rows = models::Range(num_rows);
  if (training.shuffle) {
    rows = models::Shuffle(std::move(rows), ShuffleSeed(plan, round), num_rows);
  }
  return models::Repeat(models::Batch(std::move(rows), training.batch,
                                      training.last_batch == contracts::LastBatch::kDrop
                                          ? models::LastBatch::kDrop
                                          : models::LastBatch::kKeep));
}

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

// Runs the steps of a round on one strategy.
class Stepper {
 public:
  Stepper(const DatasetAlias& alias, const Rows& rows, const TrainOptions& options,
          std::uint64_t steps, models::Strategy& strategy)
      : alias_(alias), all_(rows), options_(options), steps_(steps), strategy_(strategy) {}

  // Goes on where an earlier attempt at this task has left a checkpoint.
  Status Resume() {
    if (options_.checkpoints == nullptr) {
      return OkStatus();
    }
    std::vector<std::uint64_t> kept = options_.checkpoints->Steps();
    kept.erase(std::remove_if(kept.begin(), kept.end(),
                              [this](std::uint64_t step) { return step >= steps_; }),
               kept.end());
    if (options_.strategy.workers != nullptr) {
      ASSIGN_OR_RETURN(kept, KeptByAll(*options_.strategy.workers, kept));
    }
    if (!kept.empty()) {
      ASSIGN_OR_RETURN(const models::Checkpoint last, options_.checkpoints->At(kept.back()));
      RETURN_IF_ERROR(strategy_.Restore(last.state));
      first_ = last.state.step;
      LogInfo("training goes on from the checkpoint of step " + std::to_string(first_));
    }
    return OkStatus();
  }

  // All rows in every step.
  std::optional<Fault> RunFullBatches(const models::BatchView& all) {
    start_ = clock_.Monotonic();
    for (std::uint64_t step = first_; step < steps_; ++step) {
      if (std::optional<Fault> fault = Step(step, all)) {
        return fault;
      }
    }
    rows_ = all_.NumRows();
    return std::nullopt;
  }

  std::optional<Fault> RunBatches(const PreparedModel& prepared,
                                  models::StagePtr<std::vector<std::size_t>> indices) {
    const Rows& rows = all_;
    std::vector<bool> seen(rows.NumRows(), false);
    // What the steps before a checkpoint used, without making their batches again.
    for (std::uint64_t step = 0; step < first_; ++step) {
      Count(*indices->Next(), seen);
    }
    models::FeedOptions feed;
    feed.limits.max_threads =
        std::clamp<std::size_t>(options_.strategy.threads, 1, kMaxFeedThreads);
    feed.limits.memory_bytes = options_.input_memory_bytes;
    auto batches = models::Feed<std::vector<std::size_t>, RowBatch>(
        std::move(indices),
        [&prepared, &rows](const std::vector<std::size_t>& of_batch) {
          return MakeBatch(prepared, rows, of_batch);
        },
        [](const RowBatch& batch) { return batch.NumBytes(); }, clock_, feed);
    waited_ = [&batches] { return batches->Report().waited; };
    start_ = clock_.Monotonic();
    for (std::uint64_t step = first_; step < steps_; ++step) {
      const std::optional<RowBatch> batch = batches->Next();
      DOMICILE_CHECK(batch.has_value());  // an epoch has a batch, and the pipeline repeats
      if (std::optional<Fault> fault = Step(step, batch->View())) {
        return fault;
      }
      Count(batch->indices, seen);
    }
    const std::chrono::nanoseconds took = clock_.Monotonic() - start_;
    if (took.count() > 0) {
      input_stall_ =
          static_cast<double>(batches->Report().waited.count()) / static_cast<double>(took.count());
    }
    return std::nullopt;
  }

  std::uint64_t RowsUsed() const { return rows_; }
  double InputStall() const { return input_stall_; }

 private:
  void Count(const std::vector<std::size_t>& rows, std::vector<bool>& seen) {
    for (const std::size_t row : rows) {
      rows_ += seen[row] ? 0 : 1;
      seen[row] = true;
    }
  }

  // A checkpoint that cannot be kept costs work after a crash, and nothing else.
  void Keep(std::uint64_t done) {
    const std::uint64_t every = options_.checkpoint_steps;
    if (options_.checkpoints == nullptr || every == 0 || done % every != 0 || done == steps_) {
      return;
    }
    models::Checkpoint checkpoint;
    checkpoint.state = strategy_.State();
    if (const Status saved = options_.checkpoints->Save(checkpoint); !saved.ok()) {
      LogWarning("no checkpoint after step " + std::to_string(done) + ": " +
                 std::string(Message(saved)));
    }
  }

  std::optional<Fault> Step(std::uint64_t step, const models::BatchView& batch) {
    if (options_.stop.stop_requested()) {
      return MakeFault(Reason::kCancelled, alias_, "cancelled");
    }
    const StatusOr<double> loss = strategy_.Step(batch);
    if (!loss.ok()) {
      return MakeFault(Reason::kTrainerFailed, alias_, std::string(Message(loss.status())));
    }
    // The first step's loss is that of the model received, which may be large without harm.
    if (step > first_ && !std::isfinite(*loss)) {
      return MakeFault(Reason::kNotFinite, alias_,
                       "training is no longer finite in step " + std::to_string(step + 1) +
                           "; the plan's learning rate may be too high");
    }
    const auto percent = static_cast<std::uint32_t>((step + 1) * 100 / steps_);
    examples_ += batch.NumExamples();
    if (options_.progress && percent != percent_) {
      percent_ = percent;
      options_.progress({percent, Figures(*loss / static_cast<double>(batch.NumExamples()))});
    }
    Keep(step + 1);
    return std::nullopt;
  }

  // Of the steps since first_; without a clock there is nothing to tell.
  std::optional<TrainFigures> Figures(double loss) const {
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
    return figures;
  }

  const DatasetAlias& alias_;
  const Rows& all_;
  const TrainOptions& options_;
  std::uint64_t steps_;
  models::Strategy& strategy_;
  const FakeClock still_{WallTime{}};
  const Clock& clock_ = options_.clock != nullptr ? *options_.clock : still_;
  std::uint64_t first_ = 0;  // step to begin with
  std::uint64_t rows_ = 0;   // distinct rows that steps used
  MonotonicTime start_{};    // of the steps
  std::uint64_t examples_ = 0;
  // For input, so far.
  std::function<std::chrono::nanoseconds()> waited_ = [] { return std::chrono::nanoseconds(0); };
  double input_stall_ = 0;
  std::uint32_t percent_ = 0;
};

// The sum of the losses over all rows, a part of them at once.
StatusOr<double> LossOf(const PreparedModel& prepared, const Rows& rows,
                        models::Strategy& strategy) {
  const std::size_t at_once = RowsAtOnce(prepared.spec);
  double sum = 0;
  for (std::size_t first = 0; first < rows.NumRows(); first += at_once) {
    const RowBatch batch =
        MakeBatch(prepared, rows, first, std::min(at_once, rows.NumRows() - first));
    ASSIGN_OR_RETURN(const double loss, strategy.Loss(batch.View()));
    sum += loss;
  }
  return sum;
}

// One input's sums over rows; or what is wrong with its values.
struct InputSums {
  std::int64_t count = 0;
  CompensatedSum sum;
  CompensatedSum squares;
  std::uint64_t out_of_range = 0;
};

InputSums SumInput(const Rows& rows, std::size_t input, double offset, double range) {
  InputSums sums;
  for (std::size_t row = 0; row < rows.NumRows(); ++row) {
    const std::size_t at = row * rows.num_inputs + input;
    if (rows.missing[at] != 0) {
      continue;
    }
    const double distance = rows.inputs[at] - offset;
    if (!(std::fabs(distance) <= range)) {
      ++sums.out_of_range;
      continue;
    }
    ++sums.count;
    sums.sum.Add(distance);
    sums.squares.Add(distance * distance);
  }
  return sums;
}

}  // namespace

std::vector<std::int64_t> StatisticsResult::Flat() const {
  std::vector<std::int64_t> flat = counts;
  flat.insert(flat.end(), sums.begin(), sums.end());
  flat.insert(flat.end(), squares.begin(), squares.end());
  return flat;
}

Outcome<StatisticsResult> ComputeStatistics(const contracts::Plan& plan,
                                            const LoadedDataset& data) {
  const contracts::NormalisationPlan& grid = plan.normalisation;
  const std::size_t num_inputs = plan.NumInputs();
  if (!grid.enabled || grid.offsets.size() != num_inputs || grid.ranges.size() != num_inputs) {
    return MakeFault(Reason::kNormalisation, data.alias, "the plan asks for no statistics");
  }
  if (std::optional<Fault> fault = CheckData(plan, data)) {
    return *std::move(fault);
  }
  const std::uint64_t num_rows = data.training.NumRows();
  if (num_rows > grid.max_rows) {
    return MakeFault(Reason::kOutOfRange, data.alias,
                     std::to_string(num_rows) + " training rows, where the plan allows " +
                         std::to_string(grid.max_rows));
  }
  StatisticsResult result;
  result.rows = num_rows;
  for (std::size_t input = 0; input < num_inputs; ++input) {
    const InputSums sums = SumInput(data.training, input, grid.offsets[input], grid.ranges[input]);
    const int scale = static_cast<int>(grid.scale_bits);
    const double sum = std::nearbyint(std::ldexp(sums.sum.Value(), scale));
    const double squares = std::nearbyint(std::ldexp(sums.squares.Value(), scale));
    if (sums.out_of_range > 0 ||
        !(std::fabs(sum) <= static_cast<double>(plan.StatisticsSumMaxLevel(input))) ||
        !(squares <= static_cast<double>(plan.StatisticsSquaresMaxLevel(input)))) {
      return MakeFault(Reason::kOutOfRange, data.alias,
                       "input `" + data.input_names[input] +
                           "`: " + std::to_string(sums.out_of_range) +
                           " values beyond the plan's offset and range; correct them, or declare "
                           "the range of the column",
                       sums.out_of_range);
    }
    result.counts.push_back(sums.count);
    result.sums.push_back(static_cast<std::int64_t>(sum));
    result.squares.push_back(static_cast<std::int64_t>(squares));
  }
  return result;
}

Outcome<TrainResult> Train(const contracts::Plan& plan, const LoadedDataset& data,
                           const std::vector<models::NamedTensor>& model, RoundNumber round,
                           const TrainOptions& options) {
  const Outcome<Work> work = PrepareWork(plan, data, model, options.sources);
  if (!work.ok()) {
    return work.TheFault();
  }
  const Rows& rows = *work->training;
  if (rows.NumRows() == 0) {
    return MakeFault(Reason::kNoExamples, data.alias, "the dataset has no training rows");
  }
  const std::uint64_t steps = StepsOf(plan.training, rows.NumRows());
  if (steps == 0) {
    return MakeFault(Reason::kNoExamples, data.alias,
                     "the training rows do not fill a batch, and the plan drops what is less");
  }
  models::TrainingSpec training = TrainingOf(plan, *work, round, steps);
  training.micro_batch = options.micro_batch;
  training.precision = options.precision;
  if (training.micro_batch == 0 && !rows.lengths.empty()) {
    training.micro_batch = RowsAtOnce(training.model);
  }
  const auto failed = [&data](const Status& status) {
    return MakeFault(Reason::kTrainerFailed, data.alias, std::string(Message(status)));
  };
  const StatusOr<std::unique_ptr<models::Strategy>> strategy =
      models::MakeStrategy(options.strategy, training, work->model.parameters);
  if (!strategy.ok()) {
    return failed(strategy.status());
  }
  const StatusOr<double> loss = LossOf(work->model, rows, **strategy);
  if (!loss.ok()) {
    return failed(loss.status());
  }
  Stepper stepper(data.alias, rows, options, steps, **strategy);
  if (const Status resumed = stepper.Resume(); !resumed.ok()) {
    return failed(resumed);
  }
  std::optional<Fault> fault;
  if (plan.training.batch == 0) {
    const RowBatch all = MakeBatch(work->model, rows, 0, rows.NumRows());
    fault = stepper.RunFullBatches(all.View());
  } else {
    fault = stepper.RunBatches(work->model, Batches(plan, rows.NumRows(), round));
  }
  if (fault) {
    return *std::move(fault);
  }
  if (const StatusOr<double> rest = (*strategy)->Finish(); !rest.ok()) {
    return failed(rest.status());
  }
  TrainResult result;
  result.delta = DeltaOf(plan, *work, (*strategy)->Parameters());
  if (const Status status = models::CheckFinite(result.delta); !status.ok()) {
    return MakeFault(Reason::kNotFinite, data.alias,
                     std::string(Message(status)) +
                         " after training; the plan's learning rate "
                         "may be too high");
  }
  result.rows = stepper.RowsUsed();
  result.examples = rows.NumRows();
  result.loss_sum = LossUnits(*loss);
  result.input_stall = stepper.InputStall();
  return result;
}

}  // namespace domicile::site_agent
