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

Policy WithoutLines(Policy policy) {
  policy.file.clear();
  for (PolicyDataset& dataset : policy.datasets) {
    dataset.line = 0;
  }
  for (Rule& rule : policy.rules) {
    rule.line = 0;
    for (TransferGround& ground : rule.transfers) {
      ground.line = 0;
    }
  }
  if (policy.approvals) {
    policy.approvals->line = 0;
  }
  for (std::uint32_t* line :
       {&policy.model_line, &policy.sandbox_line, &policy.weights_line, &policy.retention.line,
        &policy.erasure_line, &policy.audit.line, &policy.time_line}) {
    *line = 0;
  }
  return policy;
}

}  // namespace domicile::policy
