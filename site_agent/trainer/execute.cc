#include "site_agent/trainer/execute.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "models/data/pipeline.h"
#include "models/data/prefetch.h"
#include "models/initial.h"
#include "site_agent/trainer/model_inputs.h"

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
      data.num_classes != plan.schema.label.NumClasses()) {
    return MakeFault(Reason::kModelShape, data.alias,
                     "the dataset was not built for the inputs and classes of this plan");
  }
  if (data.training.NumRows() == 0) {
    return MakeFault(Reason::kNoExamples, data.alias, "the dataset has no training rows");
  }
  return std::nullopt;
}

// One batch on its way to a step.
struct RowBatch {
  models::Tensor inputs;
  std::vector<std::uint32_t> labels;

  models::BatchView View() const { return {inputs.AsMatrix(), labels}; }
};

RowBatch Gather(const PreparedModel& model, const Rows& rows,
                const std::vector<std::size_t>& indices) {
  RowBatch batch;
  batch.inputs = models::Tensor({indices.size(), rows.num_inputs});
  for (std::size_t i = 0; i < indices.size(); ++i) {
    NormaliseRow(model, rows, indices[i],
                 batch.inputs.Values().subspan(i * rows.num_inputs, rows.num_inputs));
    batch.labels.push_back(rows.labels[indices[i]]);
  }
  return batch;
}

// The order of rows differs from round to round, and is the same for a round done again.
std::uint64_t ShuffleSeed(const contracts::Plan& plan, RoundNumber round) {
  SeededRandom mixer(plan.training.shuffle_seed);
  return mixer.Next64() + round;
}

// Runs the plan's local steps on one strategy.
class Stepper {
 public:
  Stepper(const contracts::Plan& plan, const LoadedDataset& data, const TrainOptions& options,
          models::Strategy& strategy)
      : plan_(plan), data_(data), options_(options), strategy_(strategy) {}

  // All rows in every step.
  std::optional<Fault> RunFullBatches(const models::BatchView& all) {
    for (std::uint32_t step = 0; step < plan_.training.local_steps; ++step) {
      if (std::optional<Fault> fault = Step(step, all)) {
        return fault;
      }
    }
    rows_ = data_.training.NumRows();
    return std::nullopt;
  }

  std::optional<Fault> RunBatches(const PreparedModel& prepared, RoundNumber round) {
    const Rows& rows = data_.training;
    const FakeClock still{WallTime{}};
    const Clock& clock = options_.clock != nullptr ? *options_.clock : still;
    auto batches = models::Prefetch(
        models::Map<std::vector<std::size_t>, RowBatch>(
            models::Repeat(models::Batch(models::Shuffle(models::Range(rows.NumRows()),
                                                         ShuffleSeed(plan_, round), rows.NumRows()),
                                         plan_.training.batch, models::LastBatch::kKeep)),
            [&prepared, &rows](const std::vector<std::size_t>& indices) {
              return Gather(prepared, rows, indices);
            },
            1),
        clock);
    const MonotonicTime start = clock.Monotonic();
    for (std::uint32_t step = 0; step < plan_.training.local_steps; ++step) {
      const std::optional<RowBatch> batch = batches->Next();
      DOMICILE_CHECK(batch.has_value());  // there are rows, and the pipeline repeats
      if (std::optional<Fault> fault = Step(step, batch->View())) {
        return fault;
      }
      // An epoch shows each row once: beyond it no row is new.
      rows_ = std::min<std::uint64_t>(rows_ + batch->labels.size(), rows.NumRows());
    }
    const std::chrono::nanoseconds took = clock.Monotonic() - start;
    if (took.count() > 0) {
      input_stall_ =
          static_cast<double>(batches->Waited().count()) / static_cast<double>(took.count());
    }
    return std::nullopt;
  }

  std::uint64_t RowsUsed() const { return rows_; }
  double InputStall() const { return input_stall_; }

 private:
  std::optional<Fault> Step(std::uint32_t step, const models::BatchView& batch) {
    if (options_.stop.stop_requested()) {
      return MakeFault(Reason::kCancelled, data_.alias, "cancelled");
    }
    const StatusOr<double> loss = strategy_.Step(batch);
    if (!loss.ok()) {
      return MakeFault(Reason::kTrainerFailed, data_.alias, std::string(Message(loss.status())));
    }
    // The first step's loss is that of the model received, which may be large without harm.
    if (step > 0 && !std::isfinite(*loss)) {
      return MakeFault(Reason::kNotFinite, data_.alias,
                       "training is no longer finite in step " + std::to_string(step + 1) +
                           "; the plan's learning rate may be too high");
    }
    const std::uint64_t done = std::uint64_t{step} + 1;
    const auto percent = static_cast<std::uint32_t>(done * 100 / plan_.training.local_steps);
    if (options_.progress && percent != percent_) {
      percent_ = percent;
      options_.progress(percent);
    }
    return std::nullopt;
  }

  const contracts::Plan& plan_;
  const LoadedDataset& data_;
  const TrainOptions& options_;
  models::Strategy& strategy_;
  std::uint64_t rows_ = 0;
  double input_stall_ = 0;
  std::uint32_t percent_ = 0;
};

std::vector<models::NamedTensor> Delta(const PreparedModel& prepared,
                                       std::span<const float> trained) {
  std::vector<float> delta(trained.begin(), trained.end());
  for (std::size_t i = 0; i < delta.size(); ++i) {
    delta[i] -= prepared.parameters[i];
  }
  return models::ToTensors(prepared.network, delta);
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
  const Outcome<PreparedModel> prepared = PrepareModel(plan, model, data.alias);
  if (!prepared.ok()) {
    return prepared.TheFault();
  }
  if (std::optional<Fault> fault = CheckData(plan, data)) {
    return *std::move(fault);
  }
  const StatusOr<std::unique_ptr<models::Strategy>> strategy =
      models::MakeStrategy(options.strategy, TrainingOf(plan), prepared->parameters);
  if (!strategy.ok()) {
    return MakeFault(Reason::kTrainerFailed, data.alias, std::string(Message(strategy.status())));
  }
  const models::Tensor inputs = NormaliseRows(*prepared, data.training, 0, data.training.NumRows());
  const models::BatchView all = {inputs.AsMatrix(), data.training.labels};
  const StatusOr<double> loss = (*strategy)->Loss(all);
  if (!loss.ok()) {
    return MakeFault(Reason::kTrainerFailed, data.alias, std::string(Message(loss.status())));
  }

  Stepper stepper(plan, data, options, **strategy);
  std::optional<Fault> fault =
      plan.training.batch == 0 ? stepper.RunFullBatches(all) : stepper.RunBatches(*prepared, round);
  if (fault) {
    return *std::move(fault);
  }
  TrainResult result;
  result.delta = Delta(*prepared, (*strategy)->Parameters());
  if (const Status status = models::CheckFinite(result.delta); !status.ok()) {
    return MakeFault(Reason::kNotFinite, data.alias,
                     std::string(Message(status)) +
                         " after training; the plan's learning rate "
                         "may be too high");
  }
  result.rows = stepper.RowsUsed();
  result.examples = data.training.NumRows();
  result.loss_sum = LossUnits(*loss);
  result.input_stall = stepper.InputStall();
  return result;
}

}  // namespace domicile::site_agent
