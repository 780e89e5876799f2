#include "site_agent/trainer/execute.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "base/log.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/model_inputs.h"
#include "site_agent/trainer/round_rows.h"
#include "site_agent/trainer/stepper.h"
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

// Whether there is anything to train on.
std::optional<Fault> CheckRows(std::size_t num_rows, const RoundRows& split,
                               std::uint64_t steps_in_epoch, const DatasetAlias& alias) {
  const auto none = [&alias](std::string line) {
    return MakeFault(Reason::kNoExamples, alias, std::move(line));
  };
  if (num_rows == 0) {
    return none("the dataset has no training rows");
  }
  if (split.steps.empty()) {
    return none("the plan has the only training row held out");
  }
  if (steps_in_epoch == 0) {
    return none("the training rows do not fill a batch, and the plan drops what is less");
  }
  return std::nullopt;
}

// What the plan asks for, as the site computes it.
models::TrainingSpec SpecOf(const contracts::Plan& plan, const Work& work, RoundNumber round,
                            std::uint64_t steps, const TrainOptions& options) {
  models::TrainingSpec spec = TrainingOf(plan, work, round, steps);
  spec.precision = options.precision;
  spec.micro_batch = options.micro_batch;
  if (spec.micro_batch == 0 && !work.training->lengths.empty()) {
    spec.micro_batch = RowsAtOnce(spec.model);
  }
  return spec;
}

StatusOr<double> LossOfAll(const PreparedModel& prepared, const Rows& rows,
                           models::Strategy& strategy) {
  std::vector<std::size_t> all(rows.NumRows());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return LossOf(prepared, rows, all, strategy);
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
  const RoundRows split = SplitRows(plan.training, rows.NumRows());
  const std::uint64_t steps_in_epoch = StepsInEpoch(plan.training, split.steps.size());
  if (std::optional<Fault> fault = CheckRows(rows.NumRows(), split, steps_in_epoch, data.alias)) {
    return *std::move(fault);
  }
  const std::uint64_t steps = plan.training.local_epochs != 0
                                  ? plan.training.local_epochs * steps_in_epoch
                                  : plan.training.local_steps;
  const auto failed = [&data](const Status& status) {
    return MakeFault(Reason::kTrainerFailed, data.alias, std::string(Message(status)));
  };
  const StatusOr<std::unique_ptr<models::Strategy>> strategy = models::MakeStrategy(
      options.strategy, SpecOf(plan, *work, round, steps, options), work->model.parameters);
  if (!strategy.ok()) {
    return failed(strategy.status());
  }
  const StatusOr<double> loss = LossOfAll(work->model, rows, **strategy);
  if (!loss.ok()) {
    return failed(loss.status());
  }
  Stepper stepper(
      {data.alias, plan.training, work->model, rows, split, options, steps_in_epoch, steps},
      **strategy);
  if (const Status resumed = stepper.Resume(); !resumed.ok()) {
    return failed(resumed);
  }
  if (std::optional<Fault> fault = stepper.Run(round)) {
    return *std::move(fault);
  }
  if (const StatusOr<double> rest = (*strategy)->Finish(); !rest.ok()) {
    return failed(rest.status());
  }
  TrainResult result;
  result.delta = DeltaOf(plan, *work, stepper.Parameters());
  if (const Status status = models::CheckFinite(result.delta); !status.ok()) {
    return MakeFault(Reason::kNotFinite, data.alias,
                     std::string(Message(status)) +
                         " after training; the plan's learning rate "
                         "may be too high");
  }
  if (const std::string summary = stepper.Summary(); !summary.empty()) {
    LogInfo(summary);
  }
  result.rows = stepper.RowsUsed();
  result.examples = rows.NumRows();
  result.loss_sum = LossUnits(*loss);
  result.input_stall = stepper.InputStall();
  result.epochs = stepper.EpochsDone();
  result.best_epoch = stepper.BestEpoch();
  return result;
}

}  // namespace domicile::site_agent
