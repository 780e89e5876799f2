#include "policy/analysis/internal/removals.h"

#include <string>
#include <utility>

#include "policy/analysis/internal/rule_keys.h"

namespace domicile::policy::analysis::internal {
namespace {

void AddRemovals(const Policy& policy, std::size_t index, std::vector<Removal>& removals) {
  const auto add = [&](const Rule* rule, std::uint32_t line, std::string_view key, Policy without) {
    removals.push_back(
        {{policy.identity.id, policy.file, line, rule == nullptr ? "" : rule->id, std::string(key)},
         index,
         std::move(without)});
  };
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    Policy without = policy;
    without.rules.erase(without.rules.begin() + static_cast<std::ptrdiff_t>(i));
    add(&rule, rule.line, "", std::move(without));
    for (const RuleKey& key : RuleKeys()) {
      if (key.is_set(rule)) {
        without = policy;
        key.clear(without.rules[i]);
        add(&rule, rule.line, key.name, std::move(without));
      }
    }
  }
  for (const SectionKey& key : SectionKeys()) {
    if (key.is_set(policy)) {
      Policy without = policy;
      key.clear(without);
      add(nullptr, key.line(policy), key.name, std::move(without));
    }
  }
}

}  // namespace

std::vector<Removal> Removals(const World& world) {
  std::vector<Removal> removals;
  for (std::size_t i = 0; i < world.policies.size(); ++i) {
    AddRemovals(world.policies[i], i, removals);
  }
  return removals;
}

World Without(const World& world, const Removal& removal) {
  World without = world;
  without.policies[removal.index] = removal.without;
  return without;
}

}  // namespace domicile::policy::analysis::internal
