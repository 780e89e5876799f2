// A plan in words: what a person approves.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"
#include "contracts/plan.h"

namespace domicile::cli {

// "3afa 26fd 108d ...": to be compared by eye, or read out over a telephone.
std::string GroupedHex(const Digest& digest);

// A job file, or the text of a plan. Errors: as ReadFile in base/file.h; kInvalidArgument.
StatusOr<contracts::Plan> ReadPlan(const std::string& path);

// Purpose, columns, recipients, view, and how many numbers leave when. Texts of the plan are
// printed so that invisible bytes show.
void PrintPlanWords(const contracts::Plan& plan, std::ostream& out);

// What a person who approved `before` must look at again in `now`: purpose, recipients, view, what
// is read, how much leaves. One entry for each thing that differs, `what: now (before)`; the names
// of columns and of plans that are new come as they are printed above.
std::vector<std::string> PlanDifferences(const contracts::Plan& before, const contracts::Plan& now);

// The numbers that leave one site, for `--json`: statistics, each_round, metrics_each_round,
// evaluation, in_all, bits_per_number.
Json LeavingFacts(const contracts::Plan& plan);

}  // namespace domicile::cli
