// Single requests, merged into products of sets: what a person can read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "policy/analysis/crossing.h"
#include "policy/analysis/internal/space.h"

namespace domicile::policy::analysis::internal {

// The same requests, each in exactly one crossing; in order of the first request of each.
std::vector<Crossing> Merge(std::span<const Key> keys, DecisionPoint point, const Space& space,
                            const Facts& facts, const std::string& site,
                            const DatasetAlias& dataset);

// The shortest list of codes and blocs that names exactly these places, as blocs stand at `now`;
// all of `all` is "every place", all but a few "every place but X".
std::vector<std::string> NamePlaces(const std::vector<Jurisdiction>& places, std::size_t all,
                                    const Facts& facts, WallTime now);

}  // namespace domicile::policy::analysis::internal
