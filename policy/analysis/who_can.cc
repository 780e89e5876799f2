#include "policy/analysis/who_can.h"

#include <array>
#include <set>
#include <utility>

#include "policy/analysis/internal/boxes.h"
#include "policy/analysis/internal/explorer.h"

namespace domicile::policy::analysis {
namespace {

using internal::Dim;

// Hubs that may get contributions. What one hands on is told of those only: of others there is
// nothing that they could hand on.
using Hubs = std::set<std::pair<std::uint16_t, std::uint16_t>>;

}  // namespace

WhoCanResult WhoCan(const World& world, const std::string& site, const DatasetAlias& dataset,
                    const Window& window) {
  WhoCanResult result;
  for (const Policy& policy : world.policies) {
    const bool is_asked = policy.source == PolicySource::kSite && policy.Find(dataset) != nullptr &&
                          (site.empty() || policy.identity.id == site);
    if (!is_asked) {
      continue;
    }
    result.is_known = true;
    const Effective effective = EffectiveOf(world, policy);
    const auto terms = effective.Find(dataset);
    const Transfer base = internal::PermissiveTransfer(policy, dataset, terms.get());
    const internal::Space space = internal::Space::About(std::array<const World*, 1>{&world},
                                                         policy.identity.id, dataset, window, {});
    internal::Explorer explorer(effective, space, base);
    Hubs hubs;
    constexpr std::array<DecisionPoint, 5> kTold = {
        DecisionPoint::kEgress, DecisionPoint::kModelToSite, DecisionPoint::kModelDownload,
        DecisionPoint::kView, DecisionPoint::kParentSum};
    for (const DecisionPoint point : kTold) {
      std::vector<internal::Key> keys;
      internal::Part part;
      if (internal::HasVia(point)) {
        part.wanted = [&hubs](const internal::Key& key, Dim dim) {
          return dim != Dim::kHubControl ||
                 hubs.contains({key[Dim::kHubPlace], key[Dim::kHubControl]});
        };
      }
      explorer.Run(
          point,
          [&](const internal::Key& key, const Transfer&, Result) {
            if (!internal::HasVia(point)) {
              hubs.insert({key[Dim::kHubPlace], key[Dim::kHubControl]});
            }
            keys.push_back(key);
            return internal::Next::kEach;
          },
          part);
      std::vector<Crossing> merged =
          internal::Merge(keys, point, space, world.facts, policy.identity.id, dataset);
      std::move(merged.begin(), merged.end(), std::back_inserter(result.allowed));
    }
    Covered covered = space.Cover(kTold);
    covered.decisions = explorer.decisions();
    result.covered.Add(covered);
  }
  return result;
}

}  // namespace domicile::policy::analysis
