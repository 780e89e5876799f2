// A policy decision as the log keeps it.
#pragma once

#include "audit/records.h"
#include "policy/engine/decide.h"

namespace domicile::audit {

// Codes and rule ids only: places and explanations stay out of the log. A simulated decision is
// none: recording one aborts. Pure.
DecisionRecord RecordOf(const policy::Decision& decision, const PolicyDigests& policies);

// A decision and how the log keeps it.
struct Decided {
  policy::Decision decision;
  DecisionRecord record;
  bool Allowed() const { return decision.result == policy::Result::kAllow; }
};

// policy::Decide, with the record. Pure.
Decided Decide(const policy::Effective& effective, const PolicyDigests& policies,
               const policy::Transfer& transfer);

}  // namespace domicile::audit
