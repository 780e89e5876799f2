// One evaluation under way: the request, what holds, and what has been found so far. The checks are
// grouped by what they are about, one file each; all run, so that a decision names every reason.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/engine/decide.h"

namespace domicile::policy::internal {

// A place and its name as the request gave them.
struct Place {
  Jurisdiction at;
  std::vector<Jurisdiction> control;
};

class Evaluation {
 public:
  // Borrows all three.
  Evaluation(const Effective& effective, const Terms& terms, const Transfer& transfer)
      : effective_(effective), terms_(terms), transfer_(transfer) {}

  // Notes a reason to deny. `origin` may be empty: no rule is behind it.
  void Deny(Reason reason, const Origin& origin, std::string what, std::string remedy);
  // Notes a rule that bore on the decision without denying.
  void Bear(const Origin& origin) { rules_.insert(origin); }

  // ---- the checks, in order of weight ----
  void CheckDenyRules();     // places.cc
  void CheckReceiver();      // places.cc
  void CheckRecipients();    // places.cc
  void CheckContent();       // numbers.cc: kinds, purpose, view
  void CheckPlan();          // numbers.cc
  void CheckPayload();       // numbers.cc
  void CheckContributors();  // numbers.cc
  void CheckSite();          // numbers.cc: runs, sandbox
  void CheckDocuments();     // ground.cc
  void CheckBorders();       // ground.cc

  const Effective& effective() const { return effective_; }
  const std::vector<Finding>& Findings() const { return findings_; }
  const std::set<Origin>& Rules() const { return rules_; }
  const std::set<std::string>& UsedFacts() const { return used_facts_; }

  // Which side asks: the site about its own data, or the aggregator.
  bool IsSitePoint() const;
  // The aggregator receives (or will) what one site sends.
  bool IsContribution() const;
  // Somebody receives a model.
  bool IsModel() const;

 private:
  // Reads a party's place and control; notes what cannot be read.
  std::optional<Place> ReadPlace(const Party& party);
  // Whether `place` is in every set of the clauses.
  void WantInside(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                  std::string_view key, const std::string& who, Reason reason);
  void DenyOverlap(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                   std::string_view key, const std::string& who);
  void DenyParty(const Party& party, bool gets_model);
  void CheckModelReceiver(const Party& party);
  void CheckBorder(const Jurisdiction& from, const Party& to, bool readable);
  void CheckConcern(const Party& to);
  // The reason for a bloc or fact that could not be told.
  Reason UnknownFact() const;

  template <typename T>
  void WantAtMost(const Clauses<T>& clauses, T value, Reason reason, const std::string& what,
                  std::string_view key);
  template <typename T>
  void WantAtLeast(const Clauses<T>& clauses, T value, Reason reason, const std::string& what,
                   std::string_view key);

  void CheckKinds();
  void CheckView();
  // `numbers` are whole; they may be too many for an integer.
  void CheckReleased(double numbers, std::uint64_t records);

  const Effective& effective_;
  const Terms& terms_;
  const Transfer& transfer_;
  std::vector<Finding> findings_;
  std::set<Origin> rules_;
  std::set<std::string> used_facts_;
};

// "[`IE`, `HU`]".
std::string Print(const std::set<Area>& areas);
std::string Print(const std::set<std::string>& names);
// "aggregator `main`". Only names that parse are shown; others are "the receiver".
std::string Who(const Party& party);
// The place if it is a code; else a note, so that free text cannot travel in a finding.
std::string ShowPlace(const std::string& text);

// Whether a token of allow.recipients or deny.recipients stands for the party.
bool Stands(const std::string& token, const Party& party);

}  // namespace domicile::policy::internal
