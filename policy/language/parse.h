// Policy files: text to Policy.
#pragma once

#include <string_view>

#include "base/status.h"
#include "policy/language/policy.h"

namespace domicile::policy {

// The one version of the language this program writes; it reads this one.
inline constexpr std::uint32_t kPolicySchema = 1;

// Reads a policy file. `file` is what errors and explanations call it; it is never sent. Keys and
// codes are closed: anything unknown is an error with line, column and the nearest spelling. Keys
// that only a site may set are errors elsewhere. Pure. Errors: kInvalidArgument,
// "FILE:LINE:COLUMN: what and how to mend it".
StatusOr<Policy> ParsePolicy(std::string_view text, std::string_view file, PolicySource source);

}  // namespace domicile::policy
