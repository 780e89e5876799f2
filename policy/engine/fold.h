// Clauses folded by the lattice of their key: what the list of clauses amounts to.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "policy/engine/meet.h"

namespace domicile::policy {

// Empty where no source has an opinion.
template <typename T>
std::optional<T> Least(const Clauses<T>& clauses) {
  if (clauses.empty()) {
    return std::nullopt;
  }
  return clauses.Least().value;
}

template <typename T>
std::optional<T> Greatest(const Clauses<T>& clauses) {
  if (clauses.empty()) {
    return std::nullopt;
  }
  return clauses.Greatest().value;
}

template <typename E>
std::optional<std::set<E>> Intersection(const Clauses<std::set<E>>& clauses) {
  if (clauses.empty()) {
    return std::nullopt;
  }
  std::set<E> common = clauses.begin()->value;
  for (const auto& clause : clauses) {
    std::erase_if(common, [&clause](const E& value) { return !clause.value.contains(value); });
  }
  return common;
}

template <typename E>
std::set<E> Union(const Clauses<std::set<E>>& clauses) {
  std::set<E> all;
  for (const auto& clause : clauses) {
    all.insert(clause.value.begin(), clause.value.end());
  }
  return all;
}

// The approvals wanted by all together: the greatest count of each role.
std::map<ApprovalRole, WantedApproval> FoldApprovals(const Terms& terms);

// The pairs of rules that leave nothing to allow for a dataset with these terms.
std::vector<std::string> FindConflicts(const Effective& effective, const Terms& terms);

}  // namespace domicile::policy
