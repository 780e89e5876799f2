#include "policy/engine/internal/evaluation.h"

#include <algorithm>

#include "policy/engine/internal/standing.h"

namespace domicile::policy::internal {

void Evaluation::Note(Reason reason, const Origin& origin, std::string what, std::string remedy) {
  if (!origin.policy.empty()) {
    rules_.insert(origin);
  }
  findings_.push_back({.reason = reason,
                       .origin = origin,
                       .what = std::move(what),
                       .remedy = std::move(remedy),
                       .hand = HandOf(reason, origin)});
}

std::set<Origin> Evaluation::Rules() const {
  std::set<Origin> rules = rules_;
  for (std::size_t mark = 0; mark < bears_.size(); ++mark) {
    if (bears_[mark]) {
      rules.insert(origins_[mark]);
    }
  }
  return rules;
}

std::vector<UsedFact> Evaluation::UsedFacts() const {
  std::vector<UsedFact> used;
  for (const Fact& fact : effective_.LegalFacts().facts) {
    if (used_facts_.contains(fact.id)) {
      used.push_back({.id = fact.id, .source = fact.source, .checked_on = fact.checked_on});
    }
  }
  std::sort(used.begin(), used.end(),
            [](const UsedFact& a, const UsedFact& b) { return a.id < b.id; });
  return used;
}

bool Evaluation::IsSitePoint() const {
  switch (transfer_.point) {
    case DecisionPoint::kOffer:
    case DecisionPoint::kDataOpen:
    case DecisionPoint::kEgress:
      return true;
    case DecisionPoint::kNone:
    case DecisionPoint::kIngress:
    case DecisionPoint::kAggregateRelease:
    case DecisionPoint::kModelToSite:
    case DecisionPoint::kModelDownload:
    case DecisionPoint::kView:
    case DecisionPoint::kEnrolment:
    case DecisionPoint::kParentSum:
      return false;
  }
  return false;
}

bool Evaluation::IsContribution() const {
  return IsSitePoint() || transfer_.point == DecisionPoint::kIngress;
}

bool Evaluation::IsModel() const {
  return transfer_.point == DecisionPoint::kModelToSite ||
         transfer_.point == DecisionPoint::kModelDownload;
}

}  // namespace domicile::policy::internal
