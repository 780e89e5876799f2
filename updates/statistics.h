// Mean and deviation of every model input over all sites, from integer sums.
//
// A *statistics* section holds three numbers per input, in the order of the plan's inputs:
//   n           rows with a value
//   sum         of L,   where L is (x - a) rounded to the grid, in levels of 2^-scale_bits
//   squares     of L^2, in units of 2^-(2 * scale_bits)
// with the public offset a of the plan. The sums are exact, so no digit is lost however large a is,
// and the same rows give the same constants however they are spread over sites.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "updates/grid.h"

namespace domicile::updates {

inline constexpr std::size_t kNumbersPerInput = 3;

struct Moments {
  std::int64_t n = 0;
  std::int64_t sum = 0;
  std::int64_t squares = 0;
  friend bool operator==(const Moments&, const Moments&) = default;
};

// What a statistics phase fixes in advance; from the plan's normalisation.
struct StatisticsRules {
  std::uint32_t scale_bits = 0;
  std::int64_t max_rows = 0;    // of one site
  std::vector<double> offsets;  // a, one per input
  std::vector<double> ranges;   // |x - a| <= range, one per input, > 0
  double deviation_floor = 0;   // a smaller deviation is an error
};

// The grid of the section: levels up to max_rows * (largest range in levels)^2, weight 1. Its
// scale_bits say how fine L is. Errors: kInvalidArgument if that could overflow over `max_sites`.
StatusOr<GridPlan> StatisticsGrid(const StatisticsRules& rules, std::int64_t max_sites);

// Adds one value of input `input` to its moments: rounds x - a onto the grid. Errors: kOutOfRange
// if |x - a| is beyond the input's range (never the value), kInvalidArgument if it is not finite.
Status AddValue(const StatisticsRules& rules, std::size_t input, double value, Moments& moments);

// The numbers of a section, and back. Errors: kInvalidArgument for a length that is no multiple
// of 3.
std::vector<std::int64_t> PrintMoments(std::span<const Moments> moments);
StatusOr<std::vector<Moments>> ParseMoments(std::span<const std::int64_t> numbers);

// Whether one site's section can come from at most max_rows rows within the ranges: per input
// 0 <= n <= max_rows, |sum| <= n * R, sum^2 <= n * squares, squares <= n * R^2. Errors:
// kInvalidArgument for a wrong number of inputs, kOutOfRange naming the input, never a value.
Status CheckSiteMoments(const StatisticsRules& rules, std::span<const Moments> moments);

struct Normalisation {
  std::vector<double> mean;
  std::vector<double> deviation;  // population: divided by n
};

// mean = a + (sum / n) * 2^-s;  deviation = sqrt((n * squares - sum^2) / n^2) * 2^-s, the numerator
// in exact 128-bit integers, so no cancellation. Errors, naming the input:
//   kFailedPrecondition  no value of an input at any site, or a deviation below the floor
//   kInvalidArgument     a wrong number of inputs, or moments that no rows can have
StatusOr<Normalisation> Normalise(const StatisticsRules& rules, std::span<const Moments> pooled);

}  // namespace domicile::updates
