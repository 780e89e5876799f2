#include "site_agent/trainer/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace domicile::site_agent {
namespace {

constexpr double kSmallestProbability = 1e-12;

}  // namespace

double LogLoss(double probability) {
  return -std::log(std::clamp(probability, kSmallestProbability, 1 - kSmallestProbability));
}

std::uint32_t PredictedClass(std::span<const double> probabilities) {
  if (probabilities.size() == 2) {
    return probabilities[1] > 0.5 ? 1 : 0;
  }
  const auto largest = std::max_element(probabilities.begin(), probabilities.end());
  return static_cast<std::uint32_t>(largest - probabilities.begin());
}

Metrics Measure(std::span<const double> probabilities, std::span<const std::uint32_t> labels,
                std::size_t num_classes) {
  Metrics metrics;
  metrics.examples = labels.size();
  if (labels.empty()) {
    return metrics;
  }
  std::vector<std::uint64_t> class_counts(num_classes, 0);
  std::vector<double> scores;
  std::uint64_t correct = 0;
  double loss = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto of_row = probabilities.subspan(row * num_classes, num_classes);
    correct += PredictedClass(of_row) == labels[row] ? 1 : 0;
    loss += LogLoss(of_row[labels[row]]);
    ++class_counts[labels[row]];
    scores.push_back(of_row[1]);
  }
  const double rows = static_cast<double>(labels.size());
  metrics.accuracy = static_cast<double>(correct) / rows;
  metrics.majority =
      static_cast<double>(*std::max_element(class_counts.begin(), class_counts.end())) / rows;
  metrics.log_loss = loss / rows;
  if (num_classes == 2) {
    metrics.auc = Auc(scores, labels);
  }
  return metrics;
}

// Mann and Whitney: the mean rank of the positives; ties share the mean of their ranks.
std::optional<double> Auc(std::span<const double> scores, std::span<const std::uint32_t> labels) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&scores](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  double positive_ranks = 0;
  double positives = 0;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && scores[order[last]] == scores[order[first]]) {
      ++last;
    }
    // Ranks count from 1: first + 1 .. last.
    const double rank = static_cast<double>(first + 1 + last) / 2;
    for (; first < last; ++first) {
      positive_ranks += labels[order[first]] == 1 ? rank : 0;
      positives += labels[order[first]] == 1 ? 1 : 0;
    }
  }
  const double negatives = static_cast<double>(scores.size()) - positives;
  if (positives == 0 || negatives == 0) {
    return std::nullopt;
  }
  return (positive_ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

std::optional<double> AucFromHistogram(std::span<const std::int64_t> negatives,
                                       std::span<const std::int64_t> positives) {
  double below = 0;
  double pairs_won = 0;
  double num_positives = 0;
  for (std::size_t bin = 0; bin < negatives.size() && bin < positives.size(); ++bin) {
    const double negative = static_cast<double>(negatives[bin]);
    const double positive = static_cast<double>(positives[bin]);
    pairs_won += positive * (below + negative / 2);
    below += negative;
    num_positives += positive;
  }
  if (below == 0 || num_positives == 0) {
    return std::nullopt;
  }
  return pairs_won / (below * num_positives);
}

}  // namespace domicile::site_agent
