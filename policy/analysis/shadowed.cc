#include "policy/analysis/shadowed.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "policy/analysis/internal/baseline.h"
#include "policy/analysis/internal/removals.h"
#include "policy/analysis/internal/settings.h"

namespace domicile::policy::analysis {
namespace {

using internal::Baseline;
using internal::Removal;

// All removals of a world, and the worlds without them.
class Comparison {
 public:
  Comparison(const World& world, const Window& window)
      : world_(world), window_(window), removals_(internal::Removals(world)) {
    for (const Removal& removal : removals_) {
      worlds_.push_back(internal::Without(world, removal));
    }
  }

  const std::vector<Removal>& removals() const { return removals_; }

  // Whether every answer stays as it is.
  bool IsShadowed(std::size_t i) {
    const Policy& before = world_.policies[removals_[i].index];
    if (!internal::CompareFiles(before, removals_[i].without).empty()) {
      return false;
    }
    for (std::size_t site = 0; site < world_.policies.size(); ++site) {
      if (!Touches(removals_[i], site)) {
        continue;
      }
      for (const std::unique_ptr<Baseline>& baseline : BaselinesOf(site)) {
        if (!baseline->IsSame(worlds_[i])) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  // Whether a site is met with the policy that changes.
  bool Touches(const Removal& removal, std::size_t site) const {
    return world_.policies[site].source == PolicySource::kSite &&
           (removal.index == site || world_.policies[removal.index].source != PolicySource::kSite);
  }

  const std::vector<std::unique_ptr<Baseline>>& BaselinesOf(std::size_t site) {
    const auto [at, is_new] = baselines_.try_emplace(site);
    if (is_new) {
      std::vector<const World*> others;
      for (std::size_t i = 0; i < worlds_.size(); ++i) {
        if (Touches(removals_[i], site)) {
          others.push_back(&worlds_[i]);
        }
      }
      const Policy& policy = world_.policies[site];
      for (const PolicyDataset& dataset : policy.datasets) {
        at->second.push_back(
            std::make_unique<Baseline>(world_, policy.identity.id, dataset.alias, window_, others));
      }
    }
    return at->second;
  }

  const World& world_;
  const Window window_;
  std::vector<Removal> removals_;
  std::vector<World> worlds_;
  // For each dataset of a site, by the place of its policy in the world; made when first needed.
  std::map<std::size_t, std::vector<std::unique_ptr<Baseline>>> baselines_;
};

}  // namespace

std::vector<Shadow> Shadowed(
    const World& world, const Window& window,
    const std::function<void(std::size_t done, std::size_t all)>& progress) {
  Comparison comparison(world, window);
  const std::vector<Removal>& removals = comparison.removals();
  std::vector<Shadow> shadows;
  std::set<std::pair<std::size_t, std::string>> whole;  // rules that are told as a whole
  for (std::size_t i = 0; i < removals.size(); ++i) {
    const Removal& removal = removals[i];
    if (progress) {
      progress(i, removals.size());
    }
    if (whole.contains({removal.index, removal.shadow.rule}) || !comparison.IsShadowed(i)) {
      continue;
    }
    if (removal.shadow.key.empty()) {
      whole.insert({removal.index, removal.shadow.rule});
    }
    shadows.push_back(removal.shadow);
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
