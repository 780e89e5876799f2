// What a running process has cost so far, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include "base/status.h"

namespace domicile::bench {

// User and system time of all its threads, also ended ones, in steps of the kernel's tick (10 ms).
// Errors: kNotFound (no such process), kDataLoss (not the kernel's form).
StatusOr<double> CpuSecondsOf(pid_t pid);

// The most memory it ever had resident (VmHWM), in MiB. Errors: as above.
StatusOr<double> PeakMibOf(pid_t pid);

}  // namespace domicile::bench
