// The answers about one dataset of one site, kept, so that worlds in which one rule or key is
// missing can be compared with it at the cost of what that rule decides.
//
// Exact, by what holds of the engine (policy/engine/meet.h): a transfer must satisfy every clause.
// So fewer clauses never deny what was allowed, and a denial stands as long as its clause does.
// Tests compare with IsSameFor, which asks everything anew.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/analysis/internal/explorer.h"
#include "policy/analysis/internal/term_changes.h"

namespace domicile::policy::analysis::internal {

// One thread at a time. Borrows `world`.
class Baseline {
 public:
  // `others` are all that will be compared: the space tells apart what any of them does. They
  // differ from `world` in rules and sections, not in sites, datasets, facts or the life of a
  // policy.
  Baseline(const World& world, std::string site, DatasetAlias dataset, const Window& window,
           std::span<const World* const> others);

  // Whether every request, and every setting, is answered alike.
  bool IsSame(const World& other) const;

 private:
  using Answers = std::unordered_map<Key, Result, KeyHash>;
  // One state of the policies about the dataset.
  struct State {
    State(const World& world, const std::string& site, const DatasetAlias& dataset);

    Effective effective;
    std::shared_ptr<const Terms> terms;  // null: the dataset is not described
    Transfer base;
  };
  // What is known at one decision point.
  struct AtPoint {
    DecisionPoint point = DecisionPoint::kNone;
    Answers answers;  // all that is not denied
    std::vector<Denial> denials;
  };

  // Whether what was not denied is answered as before.
  bool KeepsAnswers(const AtPoint& before, const State& after) const;
  // Whether something is allowed that was denied.
  bool Gains(const AtPoint& before, const State& after, const TermChange& change) const;

  const World& world_;
  std::string site_;
  DatasetAlias dataset_;
  Space space_;
  State before_;
  std::vector<AtPoint> points_;
};

}  // namespace domicile::policy::analysis::internal
