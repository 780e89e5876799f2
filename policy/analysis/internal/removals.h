// Rules and keys taken out of the policies of a world, one at a time.
#pragma once

#include <vector>

#include "policy/analysis/shadowed.h"

namespace domicile::policy::analysis::internal {

struct Removal {
  Shadow shadow;          // what is taken out
  std::size_t index = 0;  // of the policy in the world
  Policy without;
};

// In the order of the policies; a whole rule before its keys.
std::vector<Removal> Removals(const World& world);

// The world with the policy exchanged.
World Without(const World& world, const Removal& removal);

}  // namespace domicile::policy::analysis::internal
