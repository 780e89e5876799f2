// The half of execute.h that uses a model without changing its weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/json.h"
#include "models/cpu/cpu_device.h"
#include "models/model.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/model_inputs.h"
#include "site_agent/trainer/work.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

constexpr int kRefitSteps = 50;

// What comes out of a model, [rows, outputs], in float64.
std::vector<double> OutputsOf(const PreparedModel& model, const Rows& rows) {
  const std::unique_ptr<models::Device> device = models::MakeCpuDevice(1);
  models::Model network(model.spec, *device);
  const std::size_t at_once = RowsAtOnce(model.spec);
  std::vector<double> outputs;
  outputs.reserve(rows.NumRows() * models::NumOutputs(model.spec));
  for (std::size_t first = 0; first < rows.NumRows(); first += at_once) {
    const RowBatch batch = MakeBatch(model, rows, first, std::min(at_once, rows.NumRows() - first));
    const models::ConstMatrix out = network.Forward(model.parameters, batch.View());
    outputs.insert(outputs.end(), out.data, out.data + out.rows * out.columns);
  }
  return outputs;
}

// Appends the probabilities of one row: of classes 0 and 1 for one logit, else the softmax.
void AppendProbabilities(std::span<const double> logits, std::vector<double>& out) {
  if (logits.size() == 1) {
    const double positive = 1 / (1 + std::exp(-logits[0]));
    out.push_back(1 - positive);
    out.push_back(positive);
    return;
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) {
    sum += std::exp(logit - largest);
  }
  for (const double logit : logits) {
    out.push_back(std::exp(logit - largest) / sum);
  }
}

ScoredRows ToScores(const Rows& rows, std::span<const double> logits, std::size_t num_outputs) {
  ScoredRows scored;
  scored.num_classes = num_outputs == 1 ? 2 : num_outputs;
  scored.labels = rows.labels;
  for (std::size_t row = 0; row < rows.NumRows(); ++row) {
    AppendProbabilities(logits.subspan(row * num_outputs, num_outputs), scored.probabilities);
  }
  return scored;
}

ScoredRows ToPredictions(const PreparedModel& model, const Rows& rows,
                         const std::vector<double>& outputs) {
  ScoredRows scored;
  scored.targets = rows.targets;
  for (const double output : outputs) {
    scored.predictions.push_back(output * model.number.scale + model.number.offset);
  }
  return scored;
}

EvaluateResult MeasureClasses(std::size_t bins, const ScoredRows& scored) {
  const std::size_t classes = scored.num_classes;
  EvaluateResult result;
  result.examples = scored.labels.size();
  result.class_counts.assign(classes, 0);
  result.histogram.assign(classes, std::vector<std::int64_t>(bins, 0));
  double loss = 0;
  for (std::size_t row = 0; row < scored.labels.size(); ++row) {
    const std::uint32_t label = scored.labels[row];
    const auto of_row = std::span(scored.probabilities).subspan(row * classes, classes);
    result.correct += PredictedClass(of_row) == label ? 1 : 0;
    ++result.class_counts[label];
    loss += LogLoss(of_row[label]);
    const double score = classes == 2 ? of_row[1] : of_row[label];
    if (bins > 0) {
      const auto bin = static_cast<std::size_t>(score * static_cast<double>(bins));
      ++result.histogram[label][std::min(bin, bins - 1)];
    }
  }
  // LogLoss is at most 28 a row, so this fits for any number of rows in memory.
  result.loss_sum = LossUnits(loss).value_or(0);
  return result;
}

// A loss beyond what travels counts as the most that does.
EvaluateResult MeasureNumbers(const contracts::NumberLabel& label, const ScoredRows& scored) {
  EvaluateResult result;
  result.examples = scored.targets.size();
  double loss = 0;
  for (std::size_t row = 0; row < scored.targets.size(); ++row) {
    const double error = (scored.predictions[row] - scored.targets[row]) / label.scale;
    loss += error * error;
  }
  result.loss_sum = LossUnits(loss).value_or(kLargestJsonInteger);
  return result;
}

// d(mean loss) / d(bias) over rows, from their logits without the bias.
std::vector<double> BiasGradient(std::span<const double> logits,
                                 std::span<const std::uint32_t> labels,
                                 std::span<const double> bias) {
  std::vector<double> gradient(bias.size(), 0);
  std::vector<double> shifted(bias.size());
  std::vector<double> probabilities;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    for (std::size_t out = 0; out < bias.size(); ++out) {
      shifted[out] = logits[row * bias.size() + out] + bias[out];
    }
    probabilities.clear();
    AppendProbabilities(shifted, probabilities);
    if (bias.size() == 1) {
      gradient[0] += probabilities[1] - (labels[row] == 1 ? 1 : 0);
      continue;
    }
    for (std::size_t out = 0; out < bias.size(); ++out) {
      gradient[out] += probabilities[out] - (labels[row] == out ? 1 : 0);
    }
  }
  for (double& value : gradient) {
    value /= static_cast<double>(labels.size());
  }
  return gradient;
}

}  // namespace

Outcome<ScoredRows> Score(const contracts::Plan& plan, const LoadedDataset& data,
                          const std::vector<models::NamedTensor>& model,
                          const ModelSources& sources) {
  const Outcome<Work> work = PrepareWork(plan, data, model, sources);
  if (!work.ok()) {
    return work.TheFault();
  }
  const Rows& rows = *work->test;
  const std::vector<double> outputs = OutputsOf(work->model, rows);
  return plan.schema.label.number ? ToPredictions(work->model, rows, outputs)
                                  : ToScores(rows, outputs, plan.NumOutputs());
}

Outcome<EvaluateResult> Evaluate(const contracts::Plan& plan, const LoadedDataset& data,
                                 const std::vector<models::NamedTensor>& model,
                                 const ModelSources& sources) {
  const Outcome<ScoredRows> scored = Score(plan, data, model, sources);
  if (!scored.ok()) {
    return scored.TheFault();
  }
  return plan.schema.label.number ? MeasureNumbers(*plan.schema.label.number, *scored)
                                  : MeasureClasses(plan.evaluation.bins, *scored);
}

Outcome<RefitResult> RefitIntercept(const contracts::Plan& plan, const LoadedDataset& data,
                                    const std::vector<models::NamedTensor>& model,
                                    const ModelSources& sources) {
  DOMICILE_CHECK(!plan.schema.label.number);
  Outcome<Work> work = PrepareWork(plan, data, model, sources);
  if (!work.ok()) {
    return work.TheFault();
  }
  if (data.training.NumRows() == 0) {
    return MakeFault(Reason::kNoExamples, data.alias, "the dataset has no training rows");
  }
  // The output layer's bias stands at the end of the flat vector, whatever the model.
  const std::size_t outputs = plan.NumOutputs();
  PreparedModel& without_bias = work->model;
  RefitResult result;
  const auto first = static_cast<std::ptrdiff_t>(without_bias.parameters.size() - outputs);
  result.bias.assign(without_bias.parameters.begin() + first, without_bias.parameters.end());
  std::fill(without_bias.parameters.begin() + first, without_bias.parameters.end(), 0.0F);

  const std::vector<double> training = OutputsOf(without_bias, *work->training);
  for (int step = 0; step < kRefitSteps; ++step) {
    const std::vector<double> gradient = BiasGradient(training, data.training.labels, result.bias);
    for (std::size_t out = 0; out < outputs; ++out) {
      result.bias[out] -= plan.training.learning_rate * gradient[out];
    }
  }
  std::vector<double> test = OutputsOf(without_bias, *work->test);
  for (std::size_t i = 0; i < test.size(); ++i) {
    test[i] += result.bias[i % outputs];
  }
  result.test = ToScores(*work->test, test, outputs);
  return result;
}

}  // namespace domicile::site_agent
