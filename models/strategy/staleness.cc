#include "models/strategy/staleness.h"

#include <algorithm>
#include <cstddef>

namespace domicile::models {

bool CanAllKeepBound(std::vector<std::uint64_t> versions, std::uint64_t granted,
                     std::uint64_t bound) {
  // Earliest deadline first: if any order serves, the one from the oldest version on does.
  std::sort(versions.begin(), versions.end());
  for (std::size_t place = 0; place < versions.size(); ++place) {
    if (granted + place - versions[place] > bound) {
      return false;
    }
  }
  return true;
}

bool MayRead(const std::vector<std::uint64_t>& versions, std::uint64_t version,
             std::uint64_t granted, std::uint64_t bound) {
  std::vector<std::uint64_t> all = versions;
  all.push_back(version);
  return CanAllKeepBound(std::move(all), granted, bound);
}

bool MayUpdate(const std::vector<std::uint64_t>& versions, std::size_t index, std::uint64_t granted,
               std::uint64_t bound) {
  std::vector<std::uint64_t> others = versions;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
  return granted - versions[index] <= bound &&
         CanAllKeepBound(std::move(others), granted + 1, bound);
}

}  // namespace domicile::models
