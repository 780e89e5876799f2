// What scores are worth, exactly, from the rows themselves. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace domicile::site_agent {

struct Metrics {
  std::uint64_t examples = 0;
  double accuracy = 0;        // share with the right class; 0 without examples
  double majority = 0;        // accuracy of always answering the commonest class
  double log_loss = 0;        // mean -log p(label), p cut to [1e-12, 1 - 1e-12]
  std::optional<double> auc;  // two classes, both present: ties count half
};

// -log p, p cut to [1e-12, 1 - 1e-12].
double LogLoss(double probability);

// The class that the probabilities of one row name: with two classes 1 if p(1) > 0.5, with more the
// most probable, the first of equals.
std::uint32_t PredictedClass(std::span<const double> probabilities);

// `probabilities` [rows, classes], at least two classes; labels below their number.
Metrics Measure(std::span<const double> probabilities, std::span<const std::uint32_t> labels,
                std::size_t num_classes);

// The area under the ROC curve of scores (one a row) for labels 0 and 1; empty unless both occur.
std::optional<double> Auc(std::span<const double> scores, std::span<const std::uint32_t> labels);

// The same from pooled histograms of equal bins: ties inside a bin count half.
std::optional<double> AucFromHistogram(std::span<const std::int64_t> negatives,
                                       std::span<const std::int64_t> positives);

}  // namespace domicile::site_agent
