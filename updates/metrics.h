// Loss, accuracy and AUC over all sites, from integer counts: sums are pooled, ratios never
// averaged.
//
// A *metrics* section (i64, scale_bits 0) holds, of one model on one site's rows:
//   examples, loss_examples, loss_sum_micro, and in an evaluate phase also correct
// A *histogram* section (i64, scale_bits 0) holds the rows of class 0 by score bin, then those of
// the next class, and so on; bin = min(floor(score * bins), bins - 1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "updates/grid.h"

namespace domicile::updates {

// A row's loss counts as at most this many millionths, so that the sum has a bound that no data
// moves.
inline constexpr std::int64_t kLargestLossMicro = 64'000'000;

struct MetricSums {
  std::int64_t examples = 0;
  std::int64_t loss_examples = 0;                      // those whose loss was finite
  std::int64_t loss_sum_micro = 0;                     // over them, in 1e-6
  std::optional<std::int64_t> correct = std::nullopt;  // evaluate only
  friend bool operator==(const MetricSums&, const MetricSums&) = default;
};

// Grids of the two sections, weight 1: max_level is max_rows * kLargestLossMicro, or max_rows; or
// (2^62 - 1) / max_sites where that is less. Errors: kInvalidArgument for a limit below 1.
StatusOr<GridPlan> MetricsGrid(std::int64_t max_rows, std::int64_t max_sites);
StatusOr<GridPlan> HistogramGrid(std::int64_t max_rows, std::int64_t max_sites);

// One site's sums. Without a loss (it was not finite) loss_examples is 0; a loss is brought into
// 0 .. examples * kLargestLossMicro. Errors: kInvalidArgument for counts that no rows can have.
StatusOr<MetricSums> SiteMetrics(std::int64_t examples, std::optional<std::int64_t> loss_sum_micro,
                                 std::optional<std::int64_t> correct);

// The section: 3 numbers, or 4 with `correct`. Errors of Parse: kInvalidArgument for another
// length; kOutOfRange for counts that no rows can have.
std::vector<std::int64_t> PrintMetrics(const MetricSums& sums);
StatusOr<MetricSums> ParseMetrics(std::span<const std::int64_t> numbers);

// Means over all examples. Empty, never 0 or NaN, if there are none, or if the loss of some was not
// finite.
std::optional<double> MeanLoss(const MetricSums& sums);
std::optional<double> Accuracy(const MetricSums& sums);

// The bin of a score among `bins` >= 1; scores beyond [0, 1] go to the nearest end, NaN to bin 0.
std::size_t ScoreBin(double score, std::size_t bins);

// AUC from a pooled histogram of two classes (class 0, then class 1):
// sum over bins of pos * (negatives below + neg / 2) / (P * N), in exact integers up to the one
// division. Empty if a class has no rows. Errors: kInvalidArgument for an odd or no length, a
// negative count, or more than 2^60 rows.
StatusOr<std::optional<double>> AreaUnderCurve(std::span<const std::int64_t> histogram);

}  // namespace domicile::updates
