// What one state of the policies allows and another does not, by asking Decide about every request
// of the finite space, before and after.
//
// At a load: `Diff(old, new, others, facts, {now, {}}).IsTightening()` says whether a new version
// needs no ceremony. Whatever cannot be told counts as loosening.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/analysis/crossing.h"
#include "policy/analysis/world.h"

namespace domicile::policy::analysis {

// A key that is not a dimension of the space (a number, an approval, a list of digests, who signs):
// the bound to which all sources fold, before and after. Empty: no bound.
struct SettingChange {
  std::string site;     // id of the site policy; empty for a key of the file itself
  std::string dataset;  // empty for a key of the file itself
  std::string key;      // `limit.rounds`
  std::string before;
  std::string after;
  bool loosens = false;
};

struct DiffResult {
  std::vector<Crossing> gained;  // allowed (or held) only after; merged where alike
  std::vector<Crossing> lost;    // allowed (or held) only before
  std::vector<SettingChange> settings;
  Covered covered;
  bool has_site = false;  // without a site policy nothing can be told

  // Nothing is gained and no setting loosens.
  bool IsTightening() const;
  // Nothing is gained, lost or set differently.
  bool IsSame() const;
};

// Pure. Places are compared class by class (crossing.h), dates likewise; numbers are the most
// permissive that a request can have, and compared as settings.
DiffResult Diff(const World& before, const World& after, const Window& window);

// Whether the two worlds answer alike: as Diff(...).IsSame(), but ends at the first difference.
bool IsSameFor(const World& before, const World& after, const Window& window);

// A new version of one policy. Of a site's own policy ask with no others: what they deny today they
// may allow tomorrow, and the site would have loosened without its signers. For the same reason the
// facts count as if they did not expire. `others` must hold the site policies (or statements) if
// `before` is no site's.
DiffResult Diff(const Policy& before, const Policy& after, const std::vector<Policy>& others,
                const Facts& facts, const Window& window);

}  // namespace domicile::policy::analysis
