// The work of a phase: functions of a plan, loaded data and a model. No I/O (but checkpoints, where
// the caller keeps some), no clock, no network.
//
// Whatever they return is still data of the site: the gate in the agent decides what leaves.
// Faults carry: kNoExamples (no training rows), kModelShape (the model lacks a tensor of the plan,
// or the data does not have the plan's inputs), kModelNotFinite (the model received),
// kNormalisation (constants that are no numbers, a deviation of 0 or below), kNotFinite (training
// diverged), kOutOfRange (a value beyond the plan's declared range, or a sum beyond the grid),
// kModelNotAllowed (a plan of kind kRaw is for a foreign trainer; a pretrained model that is not
// here), kCancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "contracts/plan.h"
#include "models/checkpoint.h"
#include "models/safetensors.h"
#include "models/strategy/strategy.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/trainer/metrics.h"
#include "site_agent/trainer/progress.h"
#include "site_agent/trainer/work.h"

namespace domicile::site_agent {

// Losses travel as whole numbers of 1e-6.
inline constexpr double kLossUnit = 1e-6;

// Per model input, over the training rows where it is not missing: how many, sum(x - a) and
// sum((x - a)^2) with the plan's offset a, summed with compensation in file order and rounded once
// to units of 2^-scale_bits (docs/formats/job-and-plan.md).
struct StatisticsResult {
  std::uint64_t rows = 0;  // training rows
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> sums;
  std::vector<std::int64_t> squares;

  // counts, then sums, then squares: [3 * inputs].
  std::vector<std::int64_t> Flat() const;
};

Outcome<StatisticsResult> ComputeStatistics(const contracts::Plan& plan, const LoadedDataset& data);

struct TrainOptions {
  models::StrategySpec strategy;
  ModelSources sources;
  std::size_t micro_batch = 0;  // rows of a step that go through the model at once; 0: by the model
  models::Precision precision = models::Precision::kFloat32;
  std::uint64_t input_memory_bytes = std::uint64_t{256} << 20U;  // of batches made ahead
  std::stop_token stop;
  ProgressSink progress;         // may be empty; called between steps
  const Clock* clock = nullptr;  // measures `input_stall`; without it that stays 0
  // Of this task alone: training goes on from the last one there is, to the same bits, and keeps
  // one after every `checkpoint_steps` steps and on improvement, where the plan stops early; 0:
  // after each epoch, where the plan counts in epochs. Null: none.
  models::CheckpointStore* checkpoints = nullptr;
  std::uint64_t checkpoint_steps = 0;
};

struct TrainResult {
  std::vector<models::NamedTensor> delta;  // trained - received, in the order of plan.Tensors()
  std::uint64_t rows = 0;      // distinct training rows that steps to it used: the weight
  std::uint64_t examples = 0;  // training rows, over which the loss below is summed
  // Of the model received, units of kLossUnit, without L2; absent if it is not finite or too large.
  std::optional<std::int64_t> loss_sum;
  // For the people of the site.
  double input_stall = 0;        // share of the time in steps spent waiting for input, [0, 1]
  std::uint64_t epochs = 0;      // made in full
  std::uint64_t best_epoch = 0;  // after which the parameters sent were; 0: after the last step
};

// `model` is the model file's tensors: the plan's tensors, and normalisation.mean and
// normalisation.deviation ([inputs]); without them inputs are taken as they are. The order of rows
// depends on the plan's seed and on `round`, where the plan's batch is not 0. Every call starts
// with a fresh optimizer. kNoExamples also where no batch is full and the plan drops such, and
// where the only row is held out.
Outcome<TrainResult> Train(const contracts::Plan& plan, const LoadedDataset& data,
                           const std::vector<models::NamedTensor>& model, RoundNumber round,
                           const TrainOptions& options = {});

// Counts over the test rows; all zero where there are none. Where the label is a number there are
// no classes, and the loss is the squared error of (value - offset) / scale.
struct EvaluateResult {
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  std::vector<std::int64_t> class_counts;  // [classes]; the greatest is the majority line
  std::int64_t loss_sum = 0;               // units of kLossUnit, p cut as in metrics.h; saturates
  // [classes][bins]: rows of each class by score. Two classes: the score is the probability of
  // class 1. More: that of the row's own class. Bin b holds [b / bins, (b + 1) / bins), the last
  // one 1 as well.
  std::vector<std::vector<std::int64_t>> histogram;
};

Outcome<EvaluateResult> Evaluate(const contracts::Plan& plan, const LoadedDataset& data,
                                 const std::vector<models::NamedTensor>& model,
                                 const ModelSources& sources = {});

// What the model says of rows, and what is so. For use at the site only.
struct ScoredRows {
  std::size_t num_classes = 0;        // 0 where the label is a number
  std::vector<double> probabilities;  // [rows, classes]
  std::vector<std::uint32_t> labels;  // [rows]
  std::vector<double> predictions;    // [rows], where the label is a number: in its unit
  std::vector<double> targets;        // likewise

  std::size_t NumRows() const { return labels.empty() ? targets.size() : labels.size(); }
};

// Of the test rows. Running statistics of batch norms are formed from the training rows.
Outcome<ScoredRows> Score(const contracts::Plan& plan, const LoadedDataset& data,
                          const std::vector<models::NamedTensor>& model,
                          const ModelSources& sources = {});

// Refits only the output bias on the site's own training rows: 50 full-batch steps of the plan's
// learning rate, without L2 or momentum, in float64. Stays at the site.
struct RefitResult {
  std::vector<double> bias;  // [outputs]
  ScoredRows test;           // test rows under that bias
};

// The plan's label must be a class.
Outcome<RefitResult> RefitIntercept(const contracts::Plan& plan, const LoadedDataset& data,
                                    const std::vector<models::NamedTensor>& model,
                                    const ModelSources& sources = {});

}  // namespace domicile::site_agent
