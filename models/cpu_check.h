// Whether this machine can run the kernels of this build.
#pragma once

#include <string_view>

#include "base/status.h"

namespace domicile::models {

// The instruction set the kernels were compiled for: the value of DOMICILE_ISA, "x86-64-v3" unless
// the build said otherwise.
std::string_view KernelIsa();

// To be called by every `main` that trains, before anything else of models/. Errors:
// kFailedPrecondition, naming the missing instruction sets and the build option that helps.
Status CheckCpu();

}  // namespace domicile::models
