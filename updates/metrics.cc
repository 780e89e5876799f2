#include "updates/metrics.h"

#include <algorithm>
#include <limits>
#include <string>

namespace domicile::updates {
namespace {

__extension__ using Int128 = __int128;

// With saturation instead of an error: these limits bound counts that a site states, and a count
// that does not fit is refused on arrival.
StatusOr<GridPlan> CountGrid(std::int64_t max_rows, std::int64_t per_row, std::int64_t max_sites) {
  if (max_rows < 1 || max_sites < 1) {
    return Error(StatusCode::kInvalidArgument, "a grid of counts needs limits of at least 1");
  }
  const std::int64_t most = (kSumLimit - 1) / max_sites;
  std::int64_t level = 0;
  if (__builtin_mul_overflow(max_rows, per_row, &level)) {
    level = most;
  }
  return GridPlan::Create(0, std::max<std::int64_t>(std::min(level, most), 1), 1, max_sites);
}

bool MakesSense(const MetricSums& sums) {
  if (sums.examples < 0 || sums.loss_examples < 0 || sums.loss_examples > sums.examples ||
      sums.loss_sum_micro < 0) {
    return false;
  }
  if (sums.correct && (*sums.correct < 0 || *sums.correct > sums.examples)) {
    return false;
  }
  return Int128{sums.loss_sum_micro} <= Int128{sums.loss_examples} * kLargestLossMicro;
}

}  // namespace

StatusOr<GridPlan> MetricsGrid(std::int64_t max_rows, std::int64_t max_sites) {
  return CountGrid(max_rows, kLargestLossMicro, max_sites);
}

StatusOr<GridPlan> HistogramGrid(std::int64_t max_rows, std::int64_t max_sites) {
  return CountGrid(max_rows, 1, max_sites);
}

StatusOr<MetricSums> SiteMetrics(std::int64_t examples, std::optional<std::int64_t> loss_sum_micro,
                                 std::optional<std::int64_t> correct) {
  MetricSums sums{.examples = examples, .correct = correct};
  if (loss_sum_micro && examples > 0) {
    std::int64_t limit = 0;
    if (__builtin_mul_overflow(examples, kLargestLossMicro, &limit)) {
      limit = std::numeric_limits<std::int64_t>::max();
    }
    sums.loss_examples = examples;
    sums.loss_sum_micro = std::clamp<std::int64_t>(*loss_sum_micro, 0, limit);
  }
  if (!MakesSense(sums)) {
    return Error(StatusCode::kInvalidArgument, "metrics with counts that no rows can have");
  }
  return sums;
}

std::vector<std::int64_t> PrintMetrics(const MetricSums& sums) {
  std::vector<std::int64_t> numbers = {sums.examples, sums.loss_examples, sums.loss_sum_micro};
  if (sums.correct) {
    numbers.push_back(*sums.correct);
  }
  return numbers;
}

StatusOr<MetricSums> ParseMetrics(std::span<const std::int64_t> numbers) {
  if (numbers.size() != 3 && numbers.size() != 4) {
    return Error(StatusCode::kInvalidArgument,
                 "metrics have 3 or 4 numbers, found " + std::to_string(numbers.size()));
  }
  MetricSums sums{
      .examples = numbers[0], .loss_examples = numbers[1], .loss_sum_micro = numbers[2]};
  if (numbers.size() == 4) {
    sums.correct = numbers[3];
  }
  if (!MakesSense(sums)) {
    return Error(StatusCode::kOutOfRange, "metrics with counts that no rows can have");
  }
  return sums;
}

std::optional<double> MeanLoss(const MetricSums& sums) {
  if (sums.examples <= 0 || sums.loss_examples != sums.examples) {
    return std::nullopt;
  }
  return static_cast<double>(sums.loss_sum_micro) / static_cast<double>(sums.examples) / 1e6;
}

std::optional<double> Accuracy(const MetricSums& sums) {
  if (sums.examples <= 0 || !sums.correct) {
    return std::nullopt;
  }
  return static_cast<double>(*sums.correct) / static_cast<double>(sums.examples);
}

std::size_t ScoreBin(double score, std::size_t bins) {
  // Written so that NaN goes to bin 0.
  if (!(score > 0)) {
    return 0;
  }
  if (score >= 1) {
    return bins - 1;
  }
  return std::min(static_cast<std::size_t>(score * static_cast<double>(bins)), bins - 1);
}

StatusOr<std::optional<double>> AreaUnderCurve(std::span<const std::int64_t> histogram) {
  if (histogram.empty() || histogram.size() % 2 != 0) {
    return Error(StatusCode::kInvalidArgument,
                 "a histogram of two classes has the same bins for both");
  }
  const std::size_t bins = histogram.size() / 2;
  const std::span<const std::int64_t> negative = histogram.first(bins);
  const std::span<const std::int64_t> positive = histogram.last(bins);
  constexpr std::int64_t kLargestCount = std::int64_t{1} << 60U;
  std::int64_t rows = 0;
  for (const std::int64_t count : histogram) {
    if (count < 0 || count > kLargestCount - rows) {
      return Error(StatusCode::kInvalidArgument, "a histogram with impossible counts");
    }
    rows += count;
  }
  Int128 doubled_wins = 0;  // twice the pairs won, ties counting half: at most 2 * 2^59 * 2^59
  std::int64_t negatives_below = 0;
  std::int64_t positives = 0;
  for (std::size_t bin = 0; bin < bins; ++bin) {
    doubled_wins += Int128{positive[bin]} * (2 * negatives_below + negative[bin]);
    negatives_below += negative[bin];
    positives += positive[bin];
  }
  if (positives == 0 || negatives_below == 0) {
    return std::optional<double>();
  }
  const Int128 doubled_pairs = 2 * Int128{positives} * Int128{negatives_below};
  return std::optional<double>(static_cast<double>(doubled_wins) /
                               static_cast<double>(doubled_pairs));
}

}  // namespace domicile::updates
