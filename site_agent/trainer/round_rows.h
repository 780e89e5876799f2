// Which rows the steps of a round use and in which order, and which a site holds out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "contracts/plan.h"
#include "models/data/pipeline.h"

namespace domicile::site_agent {

struct RoundRows {
  std::vector<std::size_t> steps;       // that steps use; rising
  std::vector<std::size_t> validation;  // held out; rising; none where the plan does not stop early
};

// The same in every round of a job.
RoundRows SplitRows(const contracts::TrainingPlan& training, std::size_t num_rows);

// Of so many rows; 0 where no batch would be full.
std::uint64_t StepsInEpoch(const contracts::TrainingPlan& training, std::size_t num_rows);

// The batches of a round, in the order of the plan; without end. The plan's batch must not be 0.
models::StagePtr<std::vector<std::size_t>> Batches(const contracts::TrainingPlan& training,
                                                   std::vector<std::size_t> rows,
                                                   RoundNumber round);

}  // namespace domicile::site_agent
