// A request for approval in words: what a person is shown before anything is signed.
#pragma once

#include <iosfwd>
#include <optional>

#include "base/json.h"
#include "cli/grant_folder.h"
#include "contracts/grant.h"
#include "contracts/plan.h"

namespace domicile::cli {

struct Shown {
  contracts::GrantBody body;
  std::optional<contracts::Plan> plan;
  bool by_folder = false;            // what was approved before is known
  std::optional<LastApproved> last;  // with a plan only
};

// Digests in groups and as words for the telephone, the plan, and what is not as it was when this
// family of jobs was approved last.
void PrintShown(const Shown& shown, std::ostream& out);

// The same for `--json`.
Json ShownFacts(const Shown& shown);

}  // namespace domicile::cli
