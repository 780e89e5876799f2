#include "policy/analysis/simulate.h"

#include <algorithm>

#include "base/text.h"

namespace domicile::policy::analysis {
namespace {

bool NamesRegime(std::string_view name, Regime regime) {
  const std::string_view code = Code(regime);
  return code == name || code.substr(0, code.find('-')) == name;
}

bool Fits(const Fact& fact, const std::vector<std::string_view>& parts) {
  return Code(fact.kind) == parts[0] && NamesRegime(parts[1], fact.regime) &&
         std::any_of(fact.to.begin(), fact.to.end(),
                     [&parts](const Area& area) { return area.text() == parts[2]; });
}

}  // namespace

StatusOr<std::vector<std::string>> FactsNamed(const Facts& facts, std::string_view name) {
  std::vector<std::string> ids;
  std::vector<std::string> all;
  const std::vector<std::string_view> parts = Split(name, ':');
  for (const Fact& fact : facts.facts) {
    all.push_back(fact.id);
    if (fact.id == name || (parts.size() == 3 && Fits(fact, parts))) {
      ids.push_back(fact.id);
    }
  }
  if (ids.empty()) {
    const std::string nearest = NearestSpelling(name, all);
    return Error(StatusCode::kInvalidArgument,
                 "no legal fact is called `" + Visible(name) +
                     "`; write its id, or KIND:REGIME:PLACE as `adequacy:eu:US`" +
                     (nearest.empty() ? "" : "; the nearest id is `" + nearest + "`"));
  }
  return ids;
}

DiffResult SimulateRevoked(const World& world, const std::vector<std::string>& ids,
                           const Window& window) {
  World after = world;
  for (Fact& fact : after.facts.facts) {
    if (std::count(ids.begin(), ids.end(), fact.id) > 0) {
      // A decision that was annulled is one that has ended: Decide can say so.
      fact.until_date = std::min(window.from, fact.until_date.value_or(window.from));
    }
  }
  return Diff(world, after, window);
}

}  // namespace domicile::policy::analysis
