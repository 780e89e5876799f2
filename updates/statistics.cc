#include "updates/statistics.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace domicile::updates {
namespace {

__extension__ using Int128 = __int128;

// n * squares * 2^scale_bits - sum^2; false if 128 bits do not hold it.
bool Spread(Int128 n, Int128 sum, Int128 squares, std::uint32_t scale_bits, Int128& spread) {
  Int128 product = 0;
  Int128 square = 0;
  return scale_bits < 126 && !__builtin_mul_overflow(n, squares, &product) &&
         !__builtin_mul_overflow(product, Int128{1} << scale_bits, &product) &&
         !__builtin_mul_overflow(sum, sum, &square) &&
         !__builtin_sub_overflow(product, square, &spread);
}

Status CheckInputs(const StatisticsRules& rules, std::size_t found) {
  if (rules.offsets.size() != rules.ranges.size() || found != rules.ranges.size()) {
    return Error(StatusCode::kInvalidArgument,
                 "statistics of " + std::to_string(rules.ranges.size()) +
                     " inputs are wanted, found " + std::to_string(found));
  }
  return OkStatus();
}

std::string Input(std::size_t index) { return "input " + std::to_string(index); }

}  // namespace

StatusOr<GridPlan> StatisticsGrid(const StatisticsRules& rules, std::int64_t max_sites) {
  const auto rows = static_cast<double>(rules.max_rows);
  double largest = rows;
  for (const double range : rules.ranges) {
    if (!std::isfinite(range) || range <= 0) {
      return Error(StatusCode::kInvalidArgument, "ranges of statistics must be above 0");
    }
    const auto bits = static_cast<int>(std::min(rules.scale_bits, kLargestScaleBits));
    largest = std::max(largest, std::ceil(std::ldexp(rows * range, bits)));
    largest = std::max(largest, std::ceil(std::ldexp(rows * (range * range), bits)));
  }
  if (largest >= static_cast<double>(kSumLimit)) {
    return Error(StatusCode::kInvalidArgument,
                 "the statistics grid could overflow; lower `scale_bits` or `max_rows`");
  }
  return GridPlan::Create(rules.scale_bits, static_cast<std::int64_t>(largest), 1, max_sites);
}

std::vector<std::int64_t> PrintMoments(std::span<const Moments> moments) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(3 * moments.size());
  for (const Moments& input : moments) {
    numbers.push_back(input.n);
  }
  for (const Moments& input : moments) {
    numbers.push_back(input.sum);
  }
  for (const Moments& input : moments) {
    numbers.push_back(input.squares);
  }
  return numbers;
}

StatusOr<std::vector<Moments>> ParseMoments(std::span<const std::int64_t> numbers) {
  if (numbers.empty() || numbers.size() % 3 != 0) {
    return Error(StatusCode::kInvalidArgument, "statistics have three numbers for each input");
  }
  const std::size_t inputs = numbers.size() / 3;
  std::vector<Moments> moments(inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    moments[i] = {numbers[i], numbers[inputs + i], numbers[2 * inputs + i]};
  }
  return moments;
}

Status CheckSiteMoments(const StatisticsRules& rules, std::span<const Moments> moments) {
  RETURN_IF_ERROR(CheckInputs(rules, moments.size()));
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const Moments& input = moments[i];
    if (input.n < 0 || input.n > rules.max_rows) {
      return Error(StatusCode::kOutOfRange, Input(i) + ": a count below 0 or above `max_rows`");
    }
    const auto n = static_cast<double>(input.n);
    const auto bits = static_cast<int>(rules.scale_bits);
    const double sum_limit = std::ceil(std::ldexp(n * rules.ranges[i], bits)) + 1;
    const double squares_limit =
        std::ceil(std::ldexp(n * (rules.ranges[i] * rules.ranges[i]), bits)) + 1;
    if (std::fabs(static_cast<double>(input.sum)) > sum_limit || input.squares < 0 ||
        static_cast<double>(input.squares) > squares_limit) {
      return Error(StatusCode::kOutOfRange, Input(i) + ": a sum beyond what the range allows");
    }
    // Cauchy and Schwarz, with the sums moved by the level that rounding may have cost.
    const Int128 magnitude = input.sum < 0 ? -Int128{input.sum} : Int128{input.sum};
    const Int128 least = std::max(magnitude - 1, Int128{0});
    Int128 spread = 0;
    if (!Spread(input.n, least, Int128{input.squares} + 1, rules.scale_bits, spread) ||
        spread < 0) {
      return Error(StatusCode::kOutOfRange, Input(i) + ": sums that no rows can have");
    }
  }
  return OkStatus();
}

StatusOr<Normalisation> Normalise(const StatisticsRules& rules, std::span<const Moments> pooled) {
  RETURN_IF_ERROR(CheckInputs(rules, pooled.size()));
  Normalisation result;
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    const Moments& input = pooled[i];
    if (input.n <= 0) {
      return Error(StatusCode::kFailedPrecondition, Input(i) + " has no value at any site");
    }
    Int128 spread = 0;
    if (!Spread(input.n, input.sum, input.squares, rules.scale_bits, spread)) {
      return Error(StatusCode::kInvalidArgument,
                   Input(i) + ": sums too large for 128 bits; lower `scale_bits`");
    }
    const double step = std::ldexp(1.0, -static_cast<int>(rules.scale_bits));
    const double mean = static_cast<double>(input.sum) / static_cast<double>(input.n);
    const auto rows_squared = static_cast<double>(Int128{input.n} * Int128{input.n});
    const double variance = static_cast<double>(std::max(spread, Int128{0})) / rows_squared;
    const double deviation = std::sqrt(variance) * step;
    if (deviation < rules.deviation_floor) {
      return Error(StatusCode::kFailedPrecondition,
                   Input(i) +
                       ": its deviation over all sites is below `deviation_floor`; leave it "
                       "out of the job");
    }
    result.mean.push_back(rules.offsets[i] + mean * step);
    result.deviation.push_back(deviation);
  }
  return result;
}

}  // namespace domicile::updates
