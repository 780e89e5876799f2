// A site's policy as others may see it: canonical JSON with dataset aliases, codes, numbers and
// dates; no private dataset name, document reference, issuer, signer or key name, no file name.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/language/policy.h"

namespace domicile::policy {

// The statement of a site policy: one line of canonical JSON without a newline. Its SHA-256,
// computed by the caller, names it. Meet gives the same effective policy for a site policy and for
// what ParseStatement reads from its statement.
std::string StatementText(const Policy& site);

// Reads bytes from the network: only exactly what StatementText writes is accepted, up to 1 MiB.
// `file` of the result is "site statement". Errors: kInvalidArgument.
StatusOr<Policy> ParseStatement(std::string_view text);

}  // namespace domicile::policy
