#include "models/layers/parameter.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace domicile::models {

std::size_t ParameterLayout::Add(ParameterView view) {
  view.offset = num_parameters_;
  view.size = 1;
  for (const std::uint64_t dimension : view.shape) {
    view.size *= dimension;
  }
  num_parameters_ += view.size;
  view.trainable = view.trainable && view.role != ParameterRole::kStatistic;
  views_.push_back(std::move(view));
  return views_.size() - 1;
}

std::size_t ParameterLayout::Freeze(std::span<const std::string> patterns) {
  std::size_t frozen = 0;
  for (ParameterView& view : views_) {
    const bool matches =
        std::any_of(patterns.begin(), patterns.end(),
                    [&view](const std::string& p) { return MatchesPattern(p, view.name); });
    if (matches && view.trainable) {
      view.trainable = false;
      ++frozen;
    }
  }
  return frozen;
}

std::vector<ParameterRange> ParameterLayout::TrainedRanges() const {
  std::vector<ParameterRange> ranges;
  for (const ParameterView& view : views_) {
    if (!view.trainable) {
      continue;
    }
    const bool decays = view.role == ParameterRole::kWeight;
    if (!ranges.empty() && ranges.back().decays == decays &&
        ranges.back().offset + ranges.back().size == view.offset) {
      ranges.back().size += view.size;
    } else {
      ranges.push_back({.offset = view.offset, .size = view.size, .decays = decays});
    }
  }
  return ranges;
}

}  // namespace domicile::models
