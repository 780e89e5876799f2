// What breaks if the law changes: the same policies without some legal facts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/analysis/diff.h"

namespace domicile::policy::analysis {

// The ids of the facts that a name means: the id of a fact itself, or `KIND:REGIME:PLACE`, as
// `adequacy:eu:US` for every adequacy decision under `eu-gdpr` whose receivers include US. REGIME
// is a code or its first part. Errors: kInvalidArgument if no fact fits, with the nearest ids.
StatusOr<std::vector<std::string>> FactsNamed(const Facts& facts, std::string_view name);

// Of a world where these facts end at once: what is lost, and what it would gain (which a fact that
// forbids can bring).
DiffResult SimulateRevoked(const World& world, const std::vector<std::string>& ids,
                           const Window& window);

}  // namespace domicile::policy::analysis
