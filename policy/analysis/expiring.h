// What ends, and when: policies, legal facts, documents, the grounds of transfers.
#pragma once

#include <string>
#include <vector>

#include "policy/analysis/world.h"

namespace domicile::policy::analysis {

struct Ending {
  WallTime at;
  std::string what;   // "the impact assessment (refs.dpia) of dataset `heart`"
  std::string where;  // file and line, as far as known
  bool is_over = false;
};

// Everything that ends before `until`, what has ended already too, by date. Only facts that a
// dataset's laws ask for, and the blocs.
std::vector<Ending> Expiring(const World& world, WallTime now, WallTime until);

}  // namespace domicile::policy::analysis
