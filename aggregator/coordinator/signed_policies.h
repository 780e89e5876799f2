// Whether the aggregator's policies and legal facts are signed by enough of those whom its
// configuration names (docs/formats/policy-signature.md).
#pragma once

#include "aggregator/coordinator/config.h"
#include "aggregator/coordinator/gate.h"
#include "base/status.h"

namespace domicile::aggregator {

// Reads FILE.sig beside each of the files that `policies` were read from. OK without looking if the
// configuration says that nobody signs. Errors: kUnauthenticated, naming the file.
Status CheckSigned(const Config& config, const PolicyFiles& policies);

}  // namespace domicile::aggregator
