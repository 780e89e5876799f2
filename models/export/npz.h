// NumPy's `.npz`: a zip archive of `.npy` arrays.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "models/safetensors.h"

namespace domicile::models {

// One uncompressed member NAME.npy a tensor (npy format 1.0, little-endian, C order), in the given
// order; the same tensors give the same bytes. Errors: kInvalidArgument: more than 65535 tensors,
// or 4 GiB, which zip without extensions cannot hold.
StatusOr<Bytes> PrintNpz(std::span<const NamedTensor> tensors);

}  // namespace domicile::models
