// The verifier over a party's SQLite database.
#pragma once

#include <string>

#include "audit/verify.h"
#include "base/status.h"

namespace domicile::audit::internal {

// Errors: kNotFound, kPermissionDenied, kUnavailable; everything else is a finding.
StatusOr<VerifyReport> VerifyDatabase(const std::string& path, const VerifyOptions& options);

}  // namespace domicile::audit::internal
