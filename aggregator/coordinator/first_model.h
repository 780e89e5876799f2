// The model a job starts from.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "contracts/plan.h"

namespace domicile::aggregator {

// Zeros or seeded weights, and normalisation constants 0 and 1 where the plan normalises; the same
// plan gives the same bytes. Errors: kInvalidArgument.
StatusOr<Bytes> FirstModel(const contracts::Plan& plan);

}  // namespace domicile::aggregator
