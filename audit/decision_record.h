// A policy decision as the log keeps it.
#pragma once

#include "audit/records.h"
#include "policy/engine/decide.h"

namespace domicile::audit {

// Codes and rule ids only: places and explanations stay out of the log. A simulated decision is
// none: recording one aborts. Pure.
DecisionRecord RecordOf(const policy::Decision& decision, const PolicyDigests& policies);

}  // namespace domicile::audit
