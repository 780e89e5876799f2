#include "policy/analysis/diff.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "policy/analysis/internal/boxes.h"
#include "policy/analysis/internal/explorer.h"
#include "policy/analysis/internal/settings.h"

namespace domicile::policy::analysis {
namespace {

using internal::Explorer;
using internal::Key;
using internal::Space;

using Answers = std::unordered_map<Key, Result, internal::KeyHash>;

const Policy* FindSite(const World& world, const std::string& id) {
  for (const Policy& policy : world.policies) {
    if (policy.source == PolicySource::kSite && policy.identity.id == id) {
      return &policy;
    }
  }
  return nullptr;
}

// One site and dataset, before and after.
class PairComparison {
 public:
  PairComparison(const World& before, const World& after, std::string site, DatasetAlias dataset,
                 const Window& window, DiffResult& result)
      : before_(before),
        after_(after),
        site_(std::move(site)),
        dataset_(std::move(dataset)),
        space_(Space::About(std::array<const World*, 2>{&before, &after}, site_, dataset_, window,
                            {})),
        result_(result) {}

  // Ends at the first difference.
  bool IsSame() {
    CompareSettings();
    if (!result_.settings.empty()) {
      return false;  // far cheaper to tell than requests
    }
    Covered covered;
    for (const DecisionPoint point : internal::AllPoints()) {
      if (Ask(before_, point, covered) != Ask(after_, point, covered)) {
        return false;
      }
    }
    return true;
  }

  void Run() {
    Covered covered = space_.Cover(internal::AllPoints());
    for (const DecisionPoint point : internal::AllPoints()) {
      const Answers old_answers = Ask(before_, point, covered);
      const Answers new_answers = Ask(after_, point, covered);
      Report(new_answers, old_answers, point, after_.facts, result_.gained);
      Report(old_answers, new_answers, point, before_.facts, result_.lost);
    }
    result_.covered.Add(covered);
    CompareSettings();
  }

 private:
  // Every request that is not denied.
  Answers Ask(const World& world, DecisionPoint point, Covered& covered) const {
    Answers answers;
    const Policy* site = FindSite(world, site_);
    if (site == nullptr) {
      return answers;  // a site without a policy lets nothing out
    }
    const Effective effective = EffectiveOf(world, *site);
    const auto terms = effective.Find(dataset_);
    const Transfer base = internal::PermissiveTransfer(*site, dataset_, terms.get());
    Explorer explorer(effective, space_, base);
    explorer.Run(point, [&answers](const Key& key, const Transfer&, Result answer) {
      answers.emplace(key, answer);
      return internal::Next::kEach;
    });
    covered.decisions += explorer.decisions();
    return answers;
  }

  // What is in `more` and not, or with a stricter answer, in `less`.
  void Report(const Answers& more, const Answers& less, DecisionPoint point, const Facts& facts,
              std::vector<Crossing>& crossings) const {
    std::vector<Key> keys;
    for (const auto& [key, result] : more) {
      const auto other = less.find(key);
      if (other == less.end() || other->second < result) {
        keys.push_back(key);
      }
    }
    std::sort(keys.begin(), keys.end());
    std::vector<Crossing> merged = internal::Merge(keys, point, space_, facts, site_, dataset_);
    std::move(merged.begin(), merged.end(), std::back_inserter(crossings));
  }

  void CompareSettings() {
    const Policy* old_site = FindSite(before_, site_);
    const Policy* new_site = FindSite(after_, site_);
    if (old_site == nullptr || new_site == nullptr) {
      return;  // everything, or nothing, is told by the requests
    }
    const auto old_terms = EffectiveOf(before_, *old_site).Find(dataset_);
    const auto new_terms = EffectiveOf(after_, *new_site).Find(dataset_);
    if (!old_terms || !new_terms) {
      return;
    }
    std::vector<SettingChange> changes =
        internal::CompareSettings(*old_terms, before_.facts, *new_terms, after_.facts);
    for (SettingChange& change : changes) {
      change.site = site_;
      change.dataset = dataset_.text();
      result_.settings.push_back(std::move(change));
    }
  }

  const World& before_;
  const World& after_;
  std::string site_;
  DatasetAlias dataset_;
  Space space_;
  DiffResult& result_;
};

void CollectSites(const World& world, std::map<std::string, std::set<DatasetAlias>>& sites) {
  for (const Policy& policy : world.policies) {
    if (policy.source == PolicySource::kSite) {
      std::set<DatasetAlias>& datasets = sites[policy.identity.id];
      for (const PolicyDataset& dataset : policy.datasets) {
        datasets.insert(dataset.alias);
      }
    }
  }
}

// Whether nothing that a site is met with differs.
bool IsUntouched(const World& before, const World& after, const std::string& site) {
  const auto relevant = [&site](const World& world) {
    std::vector<Policy> policies;
    std::copy_if(world.policies.begin(), world.policies.end(), std::back_inserter(policies),
                 [&site](const Policy& policy) {
                   return policy.source != PolicySource::kSite || policy.identity.id == site;
                 });
    return policies;
  };
  return before.facts.facts == after.facts.facts && before.facts.expires == after.facts.expires &&
         before.facts.digest == after.facts.digest && relevant(before) == relevant(after);
}

// Keys of the files themselves. A world has one federation policy and one aggregator policy: those
// are matched even if their names differ.
void CompareAllFiles(const World& before, const World& after, DiffResult& result) {
  for (const Policy& old_policy : before.policies) {
    for (const Policy& new_policy : after.policies) {
      const bool same = old_policy.source == new_policy.source &&
                        (old_policy.source != PolicySource::kSite ||
                         old_policy.identity.id == new_policy.identity.id);
      if (same) {
        for (SettingChange& change : internal::CompareFiles(old_policy, new_policy)) {
          change.site = old_policy.identity.id;
          result.settings.push_back(std::move(change));
        }
      }
    }
  }
}

}  // namespace

Effective EffectiveOf(const World& world, const Policy& site) {
  Effective effective = FromPolicy(site, world.facts);
  for (const Policy& policy : world.policies) {
    if (policy.source != PolicySource::kSite) {
      effective = Meet(effective, FromPolicy(policy, world.facts));
    }
  }
  return effective;
}

bool DiffResult::IsTightening() const {
  return has_site && gained.empty() &&
         std::none_of(settings.begin(), settings.end(),
                      [](const SettingChange& change) { return change.loosens; });
}

bool DiffResult::IsSame() const {
  return has_site && gained.empty() && lost.empty() && settings.empty();
}

bool IsSameFor(const World& before, const World& after, const Window& window) {
  DiffResult result;
  CompareAllFiles(before, after, result);
  std::map<std::string, std::set<DatasetAlias>> sites;
  CollectSites(before, sites);
  CollectSites(after, sites);
  bool same = result.settings.empty();
  for (const auto& [site, datasets] : sites) {
    for (const DatasetAlias& dataset : datasets) {
      same = same && (IsUntouched(before, after, site) ||
                      PairComparison(before, after, site, dataset, window, result).IsSame());
    }
  }
  return same;
}

DiffResult Diff(const World& before, const World& after, const Window& window) {
  DiffResult result;
  std::map<std::string, std::set<DatasetAlias>> sites;
  CollectSites(before, sites);
  CollectSites(after, sites);
  result.has_site = !sites.empty();
  for (const auto& [site, datasets] : sites) {
    for (const DatasetAlias& dataset : datasets) {
      PairComparison(before, after, site, dataset, window, result).Run();
    }
  }
  result.covered.sites = sites.size();
  CompareAllFiles(before, after, result);
  return result;
}

DiffResult Diff(const Policy& before, const Policy& after, const std::vector<Policy>& others,
                const Facts& facts, const Window& window) {
  World old_world = {others, facts};
  // Facts that nobody vouches for today will be renewed: under them a version that allows more must
  // not look like one that does not, because for the moment all is denied.
  old_world.facts.expires = WallTime::max();
  World new_world = old_world;
  old_world.policies.push_back(before);
  new_world.policies.push_back(after);
  return Diff(old_world, new_world, window);
}

}  // namespace domicile::policy::analysis
