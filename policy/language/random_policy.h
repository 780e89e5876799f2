// Random policies for property tests: every one is what ParsePolicy could have read, and over many
// of them every key is there and is absent.
#pragma once

#include <cstdint>
#include <random>

#include "policy/language/policy.h"

namespace domicile::policy {

// The same engine state gives the same policy. Times are whole milliseconds; lines are 0.
Policy RandomPolicy(std::mt19937_64& engine, PolicySource source);

}  // namespace domicile::policy
