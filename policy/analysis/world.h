// What an analysis is asked about: policies and facts as they stand, and a span of time.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "policy/engine/meet.h"
#include "policy/language/facts.h"
#include "policy/language/policy.h"

namespace domicile::policy::analysis {

// The policies of one federation: any number of sites, each of which is met with every policy that
// is no site's. A federation or aggregator policy that is not there has no opinion.
struct World {
  std::vector<Policy> policies;
  Facts facts;
};

// [from, until). Without an end: as long as any policy asked about is in force; after that all is
// denied.
struct Window {
  WallTime from;
  std::optional<WallTime> until;
};

// The effective policy of one site of the world: `site` met with every policy that is no site's.
Effective EffectiveOf(const World& world, const Policy& site);

}  // namespace domicile::policy::analysis
