// Loss, accuracy and AUC over all sites, from integer counts: sums are pooled, ratios never
// averaged.
//
// A *metrics* section (i64) holds, of one model on one site's rows:
//   examples, correct, loss_examples, loss_sum
// loss_sum in units of 2^-kLossScaleBits, over the loss_examples rows whose loss was finite.
// A *histogram* section (i64) holds, for two classes, the positives of every score bin, then the
// negatives of every bin; bin = min(floor(score * bins), bins - 1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "updates/grid.h"

namespace domicile::updates {

inline constexpr std::uint32_t kLossScaleBits = 16;
// A row's loss counts as at most this, so that the sum has a bound that no data can move.
inline constexpr double kLargestLoss = 64;
inline constexpr std::size_t kNumMetrics = 4;

struct MetricSums {
  std::int64_t examples = 0;
  std::int64_t correct = 0;
  std::int64_t loss_examples = 0;
  std::int64_t loss_sum = 0;
  friend bool operator==(const MetricSums&, const MetricSums&) = default;
};

// Grids of the two sections, weight 1. Errors: kInvalidArgument if the sum over sites could
// overflow.
StatusOr<GridPlan> MetricsGrid(std::int64_t max_rows, std::int64_t max_sites);
StatusOr<GridPlan> HistogramGrid(std::int64_t max_rows, std::int64_t max_sites);

// One site's sums, from the total loss of its rows in double. A loss that is not finite gives
// loss_examples = 0; a larger mean than kLargestLoss saturates. Errors: kInvalidArgument for counts
// that make no sense (correct > examples, negative).
StatusOr<MetricSums> SiteMetrics(std::int64_t examples, std::int64_t correct, double total_loss);

std::array<std::int64_t, kNumMetrics> PrintMetrics(const MetricSums& sums);
// Errors: kInvalidArgument for another length; kOutOfRange for counts that no rows can have.
StatusOr<MetricSums> ParseMetrics(std::span<const std::int64_t> numbers);

// Means over all examples. Empty, never 0 or NaN, if there are none, or if the loss of some was not
// finite.
std::optional<double> MeanLoss(const MetricSums& sums);
std::optional<double> Accuracy(const MetricSums& sums);

// The bin of a score; scores outside [0, 1] and NaN go to the nearest end (NaN to 0).
std::size_t ScoreBin(double score, std::size_t bins);

// AUC from a pooled histogram: sum over bins of pos * (negatives below + neg / 2) / (P * N), in
// exact integers up to the one division. Empty if a class has no rows. Errors: kInvalidArgument for
// an odd length, an empty histogram, a negative count, or more than 2^40 rows.
StatusOr<std::optional<double>> AreaUnderCurve(std::span<const std::int64_t> histogram);

}  // namespace domicile::updates
