// Asynchronous training: workers take whole batches at their own pace, read the parameters from
// servers, and send their gradients there. A slow worker holds nobody up, until the staleness bound
// would be exceeded (staleness.h).
#pragma once

#include <memory>
#include <span>

#include "models/strategy/strategy.h"

namespace domicile::models {

// Workers are threads of this process, and so are, within them, the servers. With a bound of 0 the
// batches come one after another, and the parameters have the bits of one device; otherwise they
// depend on who was faster. Called by MakeStrategy, which has checked everything.
StatusOr<std::unique_ptr<Strategy>> MakeParameterServer(const StrategySpec& strategy,
                                                        const TrainingSpec& training,
                                                        std::span<const float> initial);

}  // namespace domicile::models
