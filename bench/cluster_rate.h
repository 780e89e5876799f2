// Training by workers that are connected as the hosts of a cluster are: on loopback, encrypted,
// each a thread of this process.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "bench/strategies.h"
#include "bench/workloads.h"

namespace domicile {

// Steps for about that long, the same for all workers, with batches that lie ready. Errors:
// kUnavailable: no ports of loopback, or a worker has failed.
StatusOr<StrategyRate> MeasureCluster(const Workload& workload, std::size_t workers,
                                      double seconds);

}  // namespace domicile
