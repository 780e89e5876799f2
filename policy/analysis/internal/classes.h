// Places split into classes by everything that can tell them apart.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "policy/analysis/internal/space.h"

namespace domicile::policy::analysis::internal {

// What tells places apart.
struct Distinctions {
  std::set<std::set<Area>> areas;            // lists of areas that are asked as one
  std::set<std::set<Jurisdiction>> members;  // of blocs that any of the lists names
  std::set<std::string> countries;           // whose own border matters
};

// Adds the members of the blocs that the lists name, as any fact ever has them.
void AddBlocs(const Facts& facts, Distinctions& distinctions);

// Every country, each subdivision that the distinctions name, in classes; the first place decides
// the order.
std::vector<PlaceClass> SplitPlaces(const Distinctions& distinctions);

}  // namespace domicile::policy::analysis::internal
