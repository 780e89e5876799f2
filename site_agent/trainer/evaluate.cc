// The half of execute.h that uses a model without changing its weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "models/cpu/cpu_device.h"
#include "models/model.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/model_inputs.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

constexpr std::size_t kRowsAtOnce = 4096;
constexpr int kRefitSteps = 50;

// Logits [rows, outputs] of a model, in float64.
std::vector<double> Logits(const PreparedModel& model, const Rows& rows) {
  const std::unique_ptr<models::Device> device = models::MakeCpuDevice(1);
  models::Model network(model.network, *device);
  std::vector<double> logits;
  logits.reserve(rows.NumRows() * model.network.num_outputs);
  for (std::size_t first = 0; first < rows.NumRows(); first += kRowsAtOnce) {
    const models::Tensor inputs =
        NormaliseRows(model, rows, first, std::min(kRowsAtOnce, rows.NumRows() - first));
    const models::ConstMatrix out =
        network.Forward(model.parameters, {.inputs = inputs.AsMatrix()});
    logits.insert(logits.end(), out.data, out.data + out.rows * out.columns);
  }
  return logits;
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

bool Fits(const contracts::Plan& plan, const Rows& rows) {
  const std::size_t classes = plan.schema.label.NumClasses();
  return rows.num_inputs == plan.NumInputs() &&
         std::all_of(rows.labels.begin(), rows.labels.end(),
                     [classes](std::uint32_t label) { return label < classes; });
}

Fault UnfitRows(const DatasetAlias& alias) {
  return MakeFault(Reason::kModelShape, alias,
                   "the dataset was not built for the inputs and classes of this plan");
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

Outcome<ScoredRows> Score(const contracts::Plan& plan, const Rows& rows,
                          const std::vector<models::NamedTensor>& model,
                          const DatasetAlias& alias) {
  const Outcome<PreparedModel> prepared = PrepareModel(plan, model, alias);
  if (!prepared.ok()) {
    return prepared.TheFault();
  }
  if (!Fits(plan, rows)) {
    return UnfitRows(alias);
  }
  return ToScores(rows, Logits(*prepared, rows), prepared->network.num_outputs);
}

Outcome<EvaluateResult> Evaluate(const contracts::Plan& plan, const LoadedDataset& data,
                                 const std::vector<models::NamedTensor>& model) {
  const Outcome<ScoredRows> scored = Score(plan, data.test, model, data.alias);
  if (!scored.ok()) {
    return scored.TheFault();
  }
  const std::size_t classes = scored->num_classes;
  const std::size_t bins = plan.evaluation.bins;
  EvaluateResult result;
  result.examples = scored->labels.size();
  result.class_counts.assign(classes, 0);
  result.histogram.assign(classes, std::vector<std::int64_t>(bins, 0));
  double loss = 0;
  for (std::size_t row = 0; row < scored->labels.size(); ++row) {
    const std::uint32_t label = scored->labels[row];
    const auto of_row = std::span(scored->probabilities).subspan(row * classes, classes);
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

Outcome<RefitResult> RefitIntercept(const contracts::Plan& plan, const LoadedDataset& data,
                                    const std::vector<models::NamedTensor>& model) {
  const Outcome<PreparedModel> prepared = PrepareModel(plan, model, data.alias);
  if (!prepared.ok()) {
    return prepared.TheFault();
  }
  if (!Fits(plan, data.training) || !Fits(plan, data.test)) {
    return UnfitRows(data.alias);
  }
  if (data.training.NumRows() == 0) {
    return MakeFault(Reason::kNoExamples, data.alias, "the dataset has no training rows");
  }
  // The output layer's bias stands at the end of the flat vector, whatever the model.
  const std::size_t outputs = prepared->network.num_outputs;
  PreparedModel without_bias = *prepared;
  RefitResult result;
  const auto first = static_cast<std::ptrdiff_t>(prepared->parameters.size() - outputs);
  result.bias.assign(prepared->parameters.begin() + first, prepared->parameters.end());
  std::fill(without_bias.parameters.begin() + first, without_bias.parameters.end(), 0.0F);

  const std::vector<double> training = Logits(without_bias, data.training);
  for (int step = 0; step < kRefitSteps; ++step) {
    const std::vector<double> gradient = BiasGradient(training, data.training.labels, result.bias);
    for (std::size_t out = 0; out < outputs; ++out) {
      result.bias[out] -= plan.training.learning_rate * gradient[out];
    }
  }
  std::vector<double> test = Logits(without_bias, data.test);
  for (std::size_t i = 0; i < test.size(); ++i) {
    test[i] += result.bias[i % outputs];
  }
  result.test = ToScores(data.test, test, outputs);
  return result;
}

}  // namespace domicile::site_agent
