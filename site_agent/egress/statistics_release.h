// Statistics leave a site once for a dataset version and a set of columns (invariant 9). Asked
// again in the same words by the same participants, the same numbers leave, charged once; any other
// question about the same columns is refused, since the difference of two answers can be a record.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/plan.h"
#include "policy/reason.h"
#include "site_agent/egress/site_store.h"
#include "site_agent/trainer/client.h"

namespace domicile::site_agent {

// Immutable.
struct StatisticsQuestion {
  Digest commitment;  // of the dataset version
  Digest columns;     // of the set of columns, whatever else the plan says of them
  Digest wording;     // of the participants, the inputs made of the columns, and their grid
};

// `participants` are sorted.
StatisticsQuestion QuestionOf(const contracts::Plan& plan, const Digest& commitment,
                              const std::vector<SiteId>& participants);

// Never asked: the trainer is asked.
struct NotAskedBefore {};
using EarlierAnswer = std::variant<NotAskedBefore, TaskResult, policy::Reason>;

// What the store knows of the question: kStatDifference for another wording. Errors: of the
// database; kDataLoss, a stored answer that is damaged.
StatusOr<EarlierAnswer> FindAnswer(SiteStore& store, const StatisticsQuestion& question);

// Keeps an answer within the caller's transaction. Whether it is new, and is charged. Errors:
// kFailedPrecondition, another answer is kept already (that of a job that was quicker).
StatusOr<bool> KeepAnswer(SiteStore& store, const StatisticsQuestion& question,
                          const StatisticsNumbers& numbers, std::uint64_t rows);

// Whether this version is told apart from an earlier one by fewer records than `min_cohort`.
bool IsTooClose(const StatisticsNumbers& numbers, std::uint64_t min_cohort);

}  // namespace domicile::site_agent
