// Spans of time as policies write them: a whole number and one unit, `30s`, `15m`, `12h`, `90d`,
// `6y`.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/language/policy.h"

namespace domicile::policy {

// One to nine digits without a leading zero, then `s`, `m` (minutes), `h`, `d` or `y` (366 days);
// at most 1000 y. Nothing is trimmed, added up or rounded. Errors: kInvalidArgument, saying what to
// write.
StatusOr<Duration> ParseDuration(std::string_view text);

// The largest unit that leaves a whole number: ParseDuration reads it back to the same span.
// `value` is at least one second and at most 1000 y.
std::string PrintDuration(Duration value);

}  // namespace domicile::policy
