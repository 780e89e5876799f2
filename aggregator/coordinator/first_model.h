// The model a job starts from.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "contracts/plan.h"

namespace domicile::aggregator {

// The names of the normalisation constants in a model file.
inline constexpr std::string_view kMeanTensor = "normalisation.mean";
inline constexpr std::string_view kDeviationTensor = "normalisation.deviation";

// Zeros or seeded weights, and normalisation constants 0 and 1 where the plan normalises; the same
// plan gives the same bytes. Errors: kInvalidArgument.
StatusOr<Bytes> FirstModel(const contracts::Plan& plan);

}  // namespace domicile::aggregator
