#include "models/strategy/buckets.h"

#include <algorithm>

namespace domicile::models {

std::vector<Bucket> CutIntoBuckets(const ParameterLayout& layout, std::size_t elements) {
  std::vector<Bucket> buckets;
  Bucket open;
  const std::span<const ParameterView> views = layout.Views();
  for (std::size_t i = views.size(); i-- > 0;) {
    const ParameterView& view = views[i];
    if (view.size == 0 || (!view.trainable && view.role != ParameterRole::kStatistic)) {
      continue;
    }
    if (!open.runs.empty() && open.First() == view.offset + view.size) {
      open.runs.back().offset = view.offset;
      open.runs.back().size += view.size;
    } else {
      open.runs.push_back({.offset = view.offset, .size = view.size});
    }
    open.size += view.size;
    if (open.size >= elements) {
      buckets.push_back(std::exchange(open, {}));
    }
  }
  if (open.size > 0) {
    buckets.push_back(std::move(open));
  }
  return buckets;
}

}  // namespace domicile::models
