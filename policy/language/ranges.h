// The ranges of numbers in policies; files and statements keep to the same.
#pragma once

#include <cstdint>
#include <string_view>

namespace domicile::policy {

// Of `secagg_threshold`: below a half two disjoint groups could each unmask, and from 1 on nobody.
inline constexpr double kLeastShare = 0.5;
inline constexpr double kMostShare = 0.99;
inline constexpr double kMostEpsilon = 1e6;
inline constexpr double kMostDelta = 0.5;
inline constexpr std::int64_t kMostWitnesses = 1000;
// How `budget_window` spells kLifeOfDataset.
inline constexpr std::string_view kLife = "life";

}  // namespace domicile::policy
