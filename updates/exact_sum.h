// The exact sum: the aggregation step of federated averaging, in integers on the round's grid.
//
// Integer addition: any order, split, pairing or thread count gives the same bits. GridPlan proves
// that max_sites terms cannot overflow; ExactSum counts them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "updates/encoding.h"
#include "updates/grid.h"

namespace domicile::updates {

// sum[p] += weight * level[p]
//
//   plan     of the section; `update` must have been checked against an equal one
//   update   [P] numbers on the grid
//   weight   1 .. plan.MaxWeight(): examples, or their policy-rounded count, or 1
//   sum      [P] int64 levels; the caller adds at most plan.MaxSites() updates to a zeroed sum
//
// O(P), no allocation. Reentrant; ranges of one sum may be folded on several threads (Slice).
// Errors, `sum` untouched:
//   kInvalidArgument  another length, another plan, or a weight outside its range
//   kOutOfRange       (levels) beyond max_level; the message names the index, never the value
Status Fold(const GridPlan& plan, const GridFloats& update, std::int64_t weight,
            std::span<std::int64_t> sum);
Status FoldLevels(const GridPlan& plan, std::span<const std::int64_t> levels, std::int64_t weight,
                  std::span<std::int64_t> sum);

// Two updates in one pass over the sum: a third less memory traffic, the same bits.
Status FoldTwo(const GridPlan& plan, const GridFloats& first, std::int64_t first_weight,
               const GridFloats& second, std::int64_t second_weight, std::span<std::int64_t> sum);

// The sum of one section of one phase in one epoch. Lives in memory only: until the floor of
// contributors is in, it is as sensitive as one update. One thread at a time.
class ExactSum {
 public:
  ExactSum(const GridPlan& plan, std::size_t count) : plan_(plan), levels_(count, 0) {}

  // Errors, nothing changed: as Fold; kResourceExhausted beyond plan.MaxSites() contributors.
  Status Add(const GridFloats& update, std::int64_t weight);
  Status AddLevels(std::span<const std::int64_t> levels, std::int64_t weight);
  Status AddTwo(const GridFloats& first, std::int64_t first_weight, const GridFloats& second,
                std::int64_t second_weight);

  const GridPlan& Plan() const { return plan_; }
  std::span<const std::int64_t> Levels() const { return levels_; }
  std::int64_t TotalWeight() const { return total_weight_; }
  std::int64_t Contributors() const { return contributors_; }

 private:
  Status Admit(std::int64_t more) const;

  GridPlan plan_;
  std::vector<std::int64_t> levels_;
  std::int64_t total_weight_ = 0;
  std::int64_t contributors_ = 0;
};

}  // namespace domicile::updates
