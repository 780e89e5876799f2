// One evaluation under way: the request, what holds, and what has been found so far. The checks are
// grouped by what they are about, one file each; all run, so that a decision names every reason.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "policy/engine/decide.h"
#include "policy/engine/internal/coverage.h"

namespace domicile::policy::internal {

// A place and from where it is controlled, as the request gave them.
struct Place {
  Jurisdiction at;
  std::vector<Jurisdiction> control;
};

// Whether texts are wanted, or only the answer.
enum class Detail : std::uint8_t { kAnswer = 0, kReasons = 1 };

// One thread at a time.
class Evaluation {
 public:
  // Borrows all three.
  Evaluation(const Effective& effective, const ReadyTerms& ready, const Transfer& transfer,
             Detail detail)
      : effective_(effective),
        terms_(ready.terms),
        law_(ready.law),
        origins_(ready.origins),
        transfer_(transfer),
        coverage_(effective.LegalFacts(), transfer.now),
        detail_(detail),
        bears_(detail == Detail::kReasons ? ready.origins.size() : 0) {}

  // Notes a reason to deny. `origin` may be empty: no rule is behind it. The texts are strings or
  // functions that make them, called only if somebody will read them.
  template <typename What, typename Remedy>
  void Deny(Reason reason, const Origin& origin, const What& what, const Remedy& remedy) {
    denied_ = true;
    if (detail_ == Detail::kReasons) {
      Note(reason, origin, TextOf(what), TextOf(remedy));
    }
  }
  // Notes a rule that bore on the decision without denying.
  template <typename T>
  void Bear(const Clause<T>& clause) {
    if (detail_ == Detail::kReasons) {
      bears_[clause.mark] = true;
    }
  }
  void Bear(const Origin& origin) {
    if (detail_ == Detail::kReasons) {
      rules_.insert(origin);
    }
  }

  // ---- the checks, in order of weight ----
  void CheckDenyRules();     // places.cc
  void CheckReceiver();      // places.cc
  void CheckTransit();       // places.cc
  void CheckRecipients();    // places.cc
  void CheckEvidence();      // places.cc
  void CheckContent();       // content.cc: kinds, outputs, purpose, view, plan, trainer
  void CheckBorders();       // ground.cc
  void CheckDocuments();     // documents.cc
  void CheckPayload();       // numbers.cc
  void CheckPlan();          // numbers.cc
  void CheckPrivacy();       // privacy.cc
  void CheckContributors();  // numbers.cc
  void CheckSite();          // site.cc: runs, sandbox, witnesses
  void CheckPeer();          // site.cc: clock, retention

  // What only people can still add: empty if all have approved.
  std::vector<Finding> FindMissingApprovals();  // site.cc

  bool IsDenied() const { return denied_; }
  const Effective& effective() const { return effective_; }
  const std::vector<Finding>& Findings() const { return findings_; }
  std::set<Origin> Rules() const;
  std::vector<UsedFact> UsedFacts() const;
  const std::vector<Crossing>& Crossings() const { return crossings_; }

  // Which side asks: the site about its own data, or the aggregator.
  bool IsSitePoint() const;
  // The aggregator receives (or will) what one site sends.
  bool IsContribution() const;
  // Somebody receives a model.
  bool IsModel() const;

 private:
  template <typename Text>
  static std::string TextOf(const Text& text) {
    if constexpr (std::is_invocable_v<Text>) {
      return text();
    } else {
      return std::string(text);
    }
  }
  void Note(Reason reason, const Origin& origin, std::string what, std::string remedy);
  // Where ids of facts that were read go; null if nobody will read them.
  std::set<std::string>* Used() { return detail_ == Detail::kReasons ? &used_facts_ : nullptr; }

  // Reads a party's place and control; notes what cannot be read.
  std::optional<Place> ReadPlace(const Party& party);
  // Whether `place` is in every set of the clauses.
  void WantInside(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                  std::string_view key, const Party& party, std::string_view relation,
                  Reason reason);
  void DenyOverlap(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                   std::string_view key, const Party& party, std::string_view relation);
  void DenyParty(const Party& party, bool gets_model);
  void CheckModelReceiver(const Party& party);
  void CheckNamed(const Party& party);
  void WantEvidence(const Party& party, const Clauses<LocationEvidence>& clauses,
                    std::string_view key);
  // The reason for a bloc or fact that could not be told.
  Reason UnknownFact() const;

  // documents.cc
  struct WantedDocument;
  void WantDocument(const WantedDocument& wanted);
  void CheckConcern(const Party& to);
  void DenyConcern(const Fact& fact, const Party& to);
  bool IsConcernLifted(Regime regime, const DatasetTraits& traits);

  // ground.cc
  struct Border;  // one border under way
  void CheckBorder(const Jurisdiction& from, const Party& to, bool readable);
  void CheckNegativeLists(const Border& border);
  void Conclude(const Border& border, const Clause<DatasetTraits>& traits,
                const Clause<std::set<TransferGround>>& stated, Regime regime);

  template <typename T>
  void WantAtMost(const Clauses<T>& clauses, T value, Reason reason, std::string_view what,
                  std::string_view key);
  template <typename T>
  void WantAtLeast(const Clauses<T>& clauses, T value, Reason reason, std::string_view what,
                   std::string_view key);
  // The same for what may be unknown, which denies.
  template <typename T, typename U>
  void WantKnownAtMost(const Clauses<T>& clauses, const std::optional<U>& value, Reason reason,
                       std::string_view what, std::string_view key);
  template <typename T, typename U>
  void WantKnownAtLeast(const Clauses<T>& clauses, const std::optional<U>& value, Reason reason,
                        std::string_view what, std::string_view key);
  template <typename T>
  void DenyUnknown(const Clauses<T>& clauses, Reason reason, std::string_view what,
                   std::string_view key);

  void CheckKinds();
  void CheckOutputs();
  void CheckPurpose();
  void CheckView();
  void CheckProgram();
  void CheckEpsilon();
  void CheckExports();
  void CheckSandbox();
  void CheckRetention();
  // Organisations that count toward a minimum of contributors, as far as is known.
  std::optional<std::uint64_t> CountContributors();
  // `numbers` are whole; they may be too many for an integer.
  void CheckReleased(double numbers, std::uint64_t records);
  bool HasDelta() const;

  const Effective& effective_;
  const Terms& terms_;
  const std::map<Regime, RegimeFacts>& law_;
  const std::vector<Origin>& origins_;
  const Transfer& transfer_;
  Coverage coverage_;
  const Detail detail_;
  bool denied_ = false;
  std::vector<bool> bears_;  // by mark
  std::vector<Finding> findings_;
  std::set<Origin> rules_;  // beside the marked ones
  std::set<std::string> used_facts_;
  std::vector<Crossing> crossings_;
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
