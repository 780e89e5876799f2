// Everybody who may get what from a dataset.
#pragma once

#include <string>
#include <vector>

#include "policy/analysis/crossing.h"
#include "policy/analysis/world.h"

namespace domicile::policy::analysis {

struct WhoCanResult {
  std::vector<Crossing> allowed;  // of contributions, then of what an aggregator hands on
  Covered covered;
  bool is_known = false;  // some site policy describes the dataset
};

// Of every site that has the dataset, at the instants of the window. `site`: only of this policy;
// empty: all.
WhoCanResult WhoCan(const World& world, const std::string& site, const DatasetAlias& dataset,
                    const Window& window);

}  // namespace domicile::policy::analysis
