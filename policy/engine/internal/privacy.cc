// Differential privacy: what is spent, of what was left, and what the number counts on.
#include <cmath>

#include "policy/engine/internal/bounds.h"

namespace domicile::policy::internal {

void Evaluation::CheckEpsilon() {
  const PlanFacts& plan = transfer_.plan;
  WantKnownAtMost(terms_.epsilon_per_run, plan.epsilon, Reason::kLimitEpsilon,
                  "the epsilon of the run is", "limit.epsilon_per_run");
  WantKnownAtMost(terms_.delta, plan.delta, Reason::kLimitEpsilon, "the delta of the run is",
                  "limit.delta");
  const bool is_negative = (plan.epsilon && !(*plan.epsilon >= 0)) ||
                           (plan.delta && !(*plan.delta >= 0)) ||
                           (transfer_.epsilon_spent && !(*transfer_.epsilon_spent >= 0));
  if (is_negative) {
    Deny(Reason::kRuleInvalid, {}, "an epsilon or delta is not a number from 0 on",
         "the plan and the ledger must state what is spent");
    return;
  }
  if (!IsSitePoint()) {
    return;  // the ledger is the site's
  }
  std::optional<double> total;
  if (plan.epsilon && transfer_.epsilon_spent) {
    total = *plan.epsilon + *transfer_.epsilon_spent;
  }
  WantKnownAtMost(terms_.epsilon_total, total, Reason::kLimitEpsilon,
                  "the epsilon spent in the budget window, with this run, is",
                  "limit.epsilon_total");
}

// Asked of runs that give differential privacy; that one must is limited by dp_mode.
void Evaluation::CheckPrivacy() {
  if (!IsContribution() || transfer_.plan.dp_mode == DpMode::kNone) {
    return;
  }
  WantAtLeast(terms_.dp_unit, transfer_.plan.dp_unit, Reason::kDpUnit, "differential privacy hides",
              "require.privacy.dp_unit");
  WantAtLeast(terms_.sampling, transfer_.plan.sampling, Reason::kSampling,
              "the sampling that the accountant counts on is", "require.privacy.sampling");
  CheckEpsilon();
}

}  // namespace domicile::policy::internal
