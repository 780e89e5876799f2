// Policies back to files.
#pragma once

#include <string>

#include "policy/language/policy.h"

namespace domicile::policy {

// The TOML text of a policy, keys in the order of docs/formats/policy.md, without comments.
// ParsePolicy reads it back to the same policy, but for file name and lines; that is, for every
// policy P that ParsePolicy gives, WithoutLines(ParsePolicy(PrintPolicy(P))) == WithoutLines(P).
std::string PrintPolicy(const Policy& policy);

}  // namespace domicile::policy
