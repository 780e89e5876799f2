// What a site policy says by saying nothing (docs/formats/policy.md, the strict defaults).
#pragma once

#include <string_view>

#include "policy/engine/terms.h"

namespace domicile::policy::internal {

inline constexpr std::string_view kStrictDefault = "strict default";

// Fills in `terms` what neither they nor `every`, both of one site policy, say about a dataset.
void AddStrictDefaults(const Terms& every, const PolicyDataset& dataset, const SiteSection& site,
                       const Origin& origin, Terms& terms);

}  // namespace domicile::policy::internal
