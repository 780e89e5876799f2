#include "models/layers/parameter.h"

#include <algorithm>
#include <utility>

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

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // After a mismatch only the last `*` needs another try: what earlier ones took cannot help.
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace domicile::models
