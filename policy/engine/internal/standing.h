// What denies whatever the rules say: a request that cannot be read, a policy out of its time.
#pragma once

#include <optional>

#include "policy/engine/decide.h"

namespace domicile::policy::internal {

// The first such thing; empty if the rules have the word.
std::optional<Finding> FindStanding(const Effective& effective, const Transfer& transfer);

// Whether the dataset is described and a rule speaks for it. `ready` may be null.
std::optional<Finding> FindUndescribed(const Transfer& transfer, const ReadyTerms* ready);

// Who could make the change that a finding asks for.
Hand HandOf(Reason reason, const Origin& origin);

}  // namespace domicile::policy::internal
