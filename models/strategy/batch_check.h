// What every strategy asks of a batch before it touches it.
#pragma once

#include "base/status.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// Errors: kInvalidArgument: no rows, another number of labels or inputs, a label beyond the
// classes.
Status CheckBatch(const NetworkSpec& network, const BatchView& batch);

}  // namespace domicile::models
