// The model a job starts from.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "contracts/plan.h"
#include "models/plans/pretrained.h"

namespace domicile::aggregator {

// What travels: zeros, seeded weights or those of a pretrained model, and normalisation constants 0
// and 1 where the plan normalises; the same plan gives the same bytes. Errors: kNotFound: weights
// of a pretrained model travel, and its file is not here; kInvalidArgument: it is not of this
// model.
StatusOr<Bytes> FirstModel(const contracts::Plan& plan,
                           const models::PretrainedModels& pretrained = {});

}  // namespace domicile::aggregator
