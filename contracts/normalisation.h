// The normalisation constants of a model file, as every program names them: docs/formats/model.md.
#pragma once

namespace domicile::contracts {

// One number an input each. Inputs are scaled as (x - mean) / deviation; 0 and 1 until the
// statistics phase has committed.
inline constexpr const char* kMeanTensor = "normalisation.mean";
inline constexpr const char* kDeviationTensor = "normalisation.deviation";

}  // namespace domicile::contracts
