#include "policy/analysis/internal/term_changes.h"

#include <algorithm>
#include <initializer_list>

namespace domicile::policy::analysis::internal {
namespace {

template <typename T>
bool Says(const Clauses<T>& clauses, const T& value) {
  return std::any_of(clauses.begin(), clauses.end(),
                     [&value](const Clause<T>& clause) { return clause.value == value; });
}

}  // namespace

bool TermChange::Leaves(Reason reason, const Origin& origin) const {
  // Lines that contradict each other deny as pairs, in the name of neither.
  return !is_other && reason != Reason::kPolicyUnsatisfiable &&
         !(removed.contains(origin) && reasons.contains(reason));
}

TermChange CompareClauses(const Terms& before, const Terms& after) {
  TermChange change;
  const auto compare = [&](auto member, std::initializer_list<Reason> reasons) {
    for (const auto& clause : before.*member) {
      if (!Says(after.*member, clause.value)) {
        change.removed.insert(clause.origin);
        change.reasons.insert(reasons);
      }
    }
    for (const auto& clause : after.*member) {
      change.has_added = change.has_added || !Says(before.*member, clause.value);
    }
  };
  // A bloc whose members no fact tells denies as a missing or expired fact.
  constexpr Reason kMissing = Reason::kFactMissing;
  constexpr Reason kExpired = Reason::kFactExpired;
  compare(&Terms::aggregator_locations, {Reason::kLocation, kMissing, kExpired});
  compare(&Terms::aggregator_control, {Reason::kControl, kMissing, kExpired});
  compare(&Terms::model_recipients, {Reason::kLocation, Reason::kControl, kMissing, kExpired});
  compare(&Terms::recipients, {Reason::kRecipient});
  compare(&Terms::update_kinds, {Reason::kUpdateKind});
  compare(&Terms::purposes, {Reason::kPurpose});
  compare(&Terms::aggregator_view, {Reason::kView});
  compare(&Terms::deny_locations, {Reason::kForbidden, kMissing, kExpired});
  compare(&Terms::deny_control, {Reason::kForbidden, kMissing, kExpired});
  compare(&Terms::deny_recipients, {Reason::kForbidden});
  compare(&Terms::deny_update_kinds, {Reason::kForbidden});
  compare(&Terms::deny_purposes, {Reason::kPurposeProhibited});
  change.is_other = !(before.traits == after.traits) || !(before.grounds == after.grounds) ||
                    before.no_rule != after.no_rule;
  return change;
}

}  // namespace domicile::policy::analysis::internal
