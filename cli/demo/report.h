// What the demo shows at its end: the models compared, what crossed which border, and the proofs.
#pragma once

#include <iosfwd>
#include <string>

#include "base/status.h"
#include "cli/demo/federation.h"
#include "wire/admin_client.h"

namespace domicile::cli {

// Downloads the last model into `folder`/model.safetensors. Errors: kPermissionDenied with the
// reason code if a policy denies it.
Status FetchFinalModel(wire::AdminClient& client, const std::string& job,
                       const std::string& folder);

// The federated model beside what can only be computed where all records are in one place (here: by
// `domicile-trainer --local`, in the demo only).
Status PrintModels(const DemoFederation& federation, const v1::ShowJobResponse& job,
                   std::ostream& out);

// From, to, kind, count, bytes, capacity, rule: by the logs of all parties.
Status PrintTransfers(const DemoFederation& federation, std::ostream& out);

// Verifies every log, reconciles each site's with the aggregator's, exports them. False if
// something does not hold.
StatusOr<bool> PrintProofs(const DemoFederation& federation, std::ostream& out);

}  // namespace domicile::cli
