// Mean and deviation of every model input over all sites, from integer sums.
//
// A *statistics* section (i64) holds, each for all inputs in the order of the plan's: the number of
// values n; then sum(x - a), then sum((x - a)^2), both rounded once to units of 2^-scale_bits, with
// the public offset a of the plan. What is added over sites is integers, so the order does not
// matter and no digit is lost however large a is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "updates/grid.h"

namespace domicile::updates {

// Of one input, at one site or over all.
struct Moments {
  std::int64_t n = 0;
  std::int64_t sum = 0;
  std::int64_t squares = 0;
  friend bool operator==(const Moments&, const Moments&) = default;
};

// What a statistics phase fixes in advance; from the plan's normalisation.
struct StatisticsRules {
  std::uint32_t scale_bits = 0;
  std::int64_t max_rows = 0;         // of one site
  std::vector<double> offsets = {};  // a, one per input
  std::vector<double> ranges = {};   // |x - a| <= range, one per input, > 0
  double deviation_floor = 0;        // a smaller deviation is an error
};

// The grid of the section, weight 1. max_level is the largest of max_rows and, for each range r,
// ceil((max_rows * r) * 2^scale_bits) and ceil((max_rows * (r * r)) * 2^scale_bits), in double.
// Errors: kInvalidArgument if that could overflow over `max_sites`, or ranges that are not
// positive.
StatusOr<GridPlan> StatisticsGrid(const StatisticsRules& rules, std::int64_t max_sites);

// The numbers of a section, and back. Errors: kInvalidArgument for a length that is no multiple
// of 3.
std::vector<std::int64_t> PrintMoments(std::span<const Moments> moments);
StatusOr<std::vector<Moments>> ParseMoments(std::span<const std::int64_t> numbers);

// Whether one site's section can come from at most max_rows rows within the ranges: per input
// 0 <= n <= max_rows, |sum| <= n * r, 0 <= squares <= n * r^2 and sum^2 <= n * squares, each with
// one level of slack for rounding. Errors: kInvalidArgument for a wrong number of inputs,
// kOutOfRange naming the input by its index, never a value.
Status CheckSiteMoments(const StatisticsRules& rules, std::span<const Moments> moments);

struct Normalisation {
  std::vector<double> mean;
  std::vector<double> deviation;  // population: divided by n
};

// mean = a + (sum / n) * 2^-s;  deviation = sqrt((n * squares * 2^s - sum^2) / n^2) * 2^-s,
// numerator and n^2 exact 128-bit integers, so nothing cancels. Errors, naming the input by its
// index:
//   kFailedPrecondition  no value of an input at any site, or a deviation below the floor
//   kInvalidArgument     a wrong number of inputs, or sums too large for 128 bits
StatusOr<Normalisation> Normalise(const StatisticsRules& rules, std::span<const Moments> pooled);

}  // namespace domicile::updates
