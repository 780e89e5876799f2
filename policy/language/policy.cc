#include "policy/language/policy.h"

#include <algorithm>

namespace domicile::policy {

bool PolicyDataset::IsSpecialCategory() const {
  return std::any_of(categories.begin(), categories.end(), IsSpecial);
}

const PolicyDataset* Policy::Find(const DatasetAlias& alias) const {
  const auto found =
      std::find_if(datasets.begin(), datasets.end(),
                   [&alias](const PolicyDataset& dataset) { return dataset.alias == alias; });
  return found == datasets.end() ? nullptr : &*found;
}

}  // namespace domicile::policy
