#include "policy/analysis/internal/baseline.h"

#include <algorithm>
#include <utility>

#include "policy/analysis/internal/settings.h"

namespace domicile::policy::analysis::internal {
namespace {

std::vector<const World*> WithFirst(const World& first, std::span<const World* const> others) {
  std::vector<const World*> all = {&first};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

const Policy& SiteOf(const World& world, const std::string& id) {
  const auto found =
      std::find_if(world.policies.begin(), world.policies.end(), [&id](const Policy& policy) {
        return policy.source == PolicySource::kSite && policy.identity.id == id;
      });
  DOMICILE_CHECK(found != world.policies.end());  // our callers take the site from the world
  return *found;
}

}  // namespace

Baseline::State::State(const World& world, const std::string& site, const DatasetAlias& dataset)
    : effective(EffectiveOf(world, SiteOf(world, site))),
      terms(effective.Find(dataset)),
      base(PermissiveTransfer(SiteOf(world, site), dataset, terms.get())) {}

Baseline::Baseline(const World& world, std::string site, DatasetAlias dataset, const Window& window,
                   std::span<const World* const> others)
    : world_(world),
      site_(std::move(site)),
      dataset_(std::move(dataset)),
      space_(Space::About(WithFirst(world, others), site_, dataset_, window, {})),
      before_(world, site_, dataset_) {
  Explorer explorer(before_.effective, space_, before_.base);
  for (const DecisionPoint point : AllPoints()) {
    AtPoint& at = points_.emplace_back();
    at.point = point;
    Part part;
    part.known.learned = &at.denials;
    explorer.Run(
        point,
        [&at](const Key& key, const Transfer&, Result answer) {
          at.answers.emplace(key, answer);
          return Next::kEach;
        },
        part);
  }
}

bool Baseline::IsSame(const World& other) const {
  const State after(other, site_, dataset_);
  if (!before_.terms || !after.terms) {
    return before_.terms == after.terms;  // without terms all is denied, and nothing is set
  }
  if (!CompareSettings(*before_.terms, world_.facts, *after.terms, other.facts).empty()) {
    return false;
  }
  const TermChange change = CompareClauses(*before_.terms, *after.terms);
  if (change.IsNone()) {
    return true;
  }
  const bool only_fewer = !change.is_other && !change.has_added;
  return std::all_of(points_.begin(), points_.end(), [&](const AtPoint& at) {
    return (only_fewer || KeepsAnswers(at, after)) && !Gains(at, after, change);
  });
}

bool Baseline::KeepsAnswers(const AtPoint& before, const State& after) const {
  const Explorer explorer(after.effective, space_, after.base);
  return std::all_of(before.answers.begin(), before.answers.end(), [&](const auto& answer) {
    return Answer(after.effective, explorer.Request(before.point, answer.first)) == answer.second;
  });
}

bool Baseline::Gains(const AtPoint& before, const State& after, const TermChange& change) const {
  Part part;
  part.wanted = [&before](const Key& key, Dim just_fixed) {
    return just_fixed != Dim::kKind || !before.answers.contains(key);
  };
  for (const Denial& denial : before.denials) {
    if (change.Leaves(denial.reason, denial.origin)) {
      part.known.denials.push_back(&denial);
    }
  }
  bool gains = false;
  Explorer explorer(after.effective, space_, after.base);
  explorer.Run(
      before.point,
      [&gains](const Key&, const Transfer&, Result) {
        gains = true;
        return Next::kStop;
      },
      part);
  return gains;
}

}  // namespace domicile::policy::analysis::internal
