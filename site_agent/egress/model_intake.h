// Model intake: whether a model that came from the aggregator may be trained on (invariant 9). The
// aggregator is not free to choose the question: a model far from the last one can be made to
// answer about single records. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "contracts/plan.h"
#include "models/safetensors.h"
#include "policy/reason.h"

namespace domicile::site_agent {

// What this site knows of the job's models so far.
struct IntakeState {
  std::vector<models::NamedTensor> last;  // the last model taken in
  std::uint32_t train_commits = 0;        // committed training phases since, each leaf verified
  bool statistics_committed = false;      // a committed statistics phase since, its leaf verified
};

// kNone if it may be used. kModelShape (not the plan's tensors), kModelNotFinite, kNormalisation
// (constants that changed without a commit, or a deviation below the plan's floor), kModelJump
// (further from the last model than so many rounds can have gone: each at most the server's rate
// times the clipping norm, as rounded onto the grid).
policy::Reason CheckModel(const contracts::Plan& plan, const IntakeState& state,
                          const std::vector<models::NamedTensor>& model);

}  // namespace domicile::site_agent
