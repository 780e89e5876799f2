// The keys that are no dimension of the space: the bound to which all sources fold, compared.
#pragma once

#include <string>
#include <vector>

#include "policy/analysis/diff.h"

namespace domicile::policy::analysis::internal {

// Those that differ. An absent bound is the loosest of all. Blocs of which the facts of a side say
// nothing are settings too.
std::vector<SettingChange> CompareSettings(const Terms& before, const Facts& old_facts,
                                           const Terms& after, const Facts& new_facts);

// Keys of one file that Decide does not ask for: who must sign a change, and who may approve.
std::vector<SettingChange> CompareFiles(const Policy& before, const Policy& after);

}  // namespace domicile::policy::analysis::internal
