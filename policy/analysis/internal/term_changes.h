// How the terms of a dataset differ, as far as requests of the space can tell.
#pragma once

#include <set>

#include "policy/engine/terms.h"
#include "policy/reason.h"

namespace domicile::policy::analysis::internal {

struct TermChange {
  // Something else than the lists below differs: nothing follows from it.
  bool is_other = false;
  // A clause was added: what was allowed may be denied.
  bool has_added = false;
  // Clauses were taken out: what they alone denied may be allowed. All findings that they can have
  // given have one of the origins and one of the reasons.
  std::set<Origin> removed;
  std::set<Reason> reasons;

  bool IsNone() const { return !is_other && !has_added && removed.empty(); }
  // Whether a denial for this reason, by this rule, stands as it was.
  bool Leaves(Reason reason, const Origin& origin) const;
};

// Of terms with the same settings (CompareSettings), of the same sources, under the same facts. The
// lists that requests of the space are held against are compared clause by clause: each clause of
// them denies by itself, whatever the others say. What the settings are about is the same in every
// request of the space. Anything else that differs counts as other.
TermChange CompareClauses(const Terms& before, const Terms& after);

}  // namespace domicile::policy::analysis::internal
