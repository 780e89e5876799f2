#include "policy/analysis/shadowed.h"

#include <set>
#include <utility>

#include "policy/analysis/diff.h"
#include "policy/analysis/internal/rule_keys.h"

namespace domicile::policy::analysis {
namespace {

struct Candidate {
  Shadow shadow;
  std::size_t index = 0;  // of the policy in the world
  Policy without;
};

void AddCandidates(const Policy& policy, std::size_t index, std::vector<Candidate>& candidates) {
  const auto add = [&](const Rule* rule, std::uint32_t line, std::string_view key, Policy without) {
    candidates.push_back(
        {{policy.identity.id, policy.file, line, rule == nullptr ? "" : rule->id, std::string(key)},
         index,
         std::move(without)});
  };
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    Policy without = policy;
    without.rules.erase(without.rules.begin() + static_cast<std::ptrdiff_t>(i));
    add(&rule, rule.line, "", std::move(without));
    for (const internal::RuleKey& key : internal::RuleKeys()) {
      if (key.is_set(rule)) {
        without = policy;
        key.clear(without.rules[i]);
        add(&rule, rule.line, key.name, std::move(without));
      }
    }
  }
  for (const internal::SectionKey& key : internal::SectionKeys()) {
    if (key.is_set(policy)) {
      Policy without = policy;
      key.clear(without);
      add(nullptr, key.line(policy), key.name, std::move(without));
    }
  }
}

}  // namespace

std::vector<Shadow> Shadowed(
    const World& world, const Window& window,
    const std::function<void(std::size_t done, std::size_t all)>& progress) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < world.policies.size(); ++i) {
    AddCandidates(world.policies[i], i, candidates);
  }
  std::vector<Shadow> shadows;
  std::set<std::pair<std::size_t, std::string>> whole;  // rules that are told as a whole
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    if (progress) {
      progress(i, candidates.size());
    }
    if (whole.contains({candidate.index, candidate.shadow.rule})) {
      continue;
    }
    World without = world;
    without.policies[candidate.index] = std::move(candidate.without);
    if (!IsSameFor(world, without, window)) {
      continue;
    }
    if (candidate.shadow.key.empty()) {
      whole.insert({candidate.index, candidate.shadow.rule});
    }
    shadows.push_back(std::move(candidate.shadow));
  }
  return shadows;
}

std::vector<std::string> Conflicts(const World& world) {
  std::vector<std::string> conflicts;
  for (const Policy& site : world.policies) {
    if (site.source != PolicySource::kSite) {
      continue;
    }
    const Effective effective = EffectiveOf(world, site);
    for (const PolicyDataset& dataset : site.datasets) {
      for (const std::string& conflict : effective.Conflicts(dataset.alias)) {
        conflicts.push_back(site.identity.id + ", dataset `" + dataset.alias.text() +
                            "`: " + conflict);
      }
    }
  }
  return conflicts;
}

}  // namespace domicile::policy::analysis
