// The decision: may this cross? Pure, total, no clock: the same answer for the same values for
// ever.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/engine/meet.h"
#include "policy/engine/transfer.h"
#include "policy/reason.h"

namespace domicile::policy {

struct Decision;

// Proof that Decide() permitted one transfer. Nothing else makes one; sending consumes it.
// Move-only.
class Permit {
 public:
  Permit(Permit&&) noexcept = default;
  Permit& operator=(Permit&&) noexcept = default;
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

  const Transfer& Scope() const { return scope_; }

 private:
  friend Decision Decide(const Effective& effective, const Transfer& transfer);
  explicit Permit(Transfer scope) : scope_(std::move(scope)) {}
  Transfer scope_;
};

// Stored and sent: append, never renumber.
enum class Result : std::uint8_t { kDeny = 0, kHold = 1, kAllow = 2 };
std::string_view Code(Result result);  // "deny", "hold", "allow"

// Who could make the change that a finding asks for.
enum class Hand : std::uint8_t {
  kNobody = 0,  // nothing can be changed
  kSite = 1,    // the site itself: its policy, its grants, its machines
  kAggregator = 2,
  kFederation = 3,  // its policy, its roster
  kJob = 4,         // who wrote the job
  kLaw = 5,         // who keeps the legal facts; a fact itself is nobody's to change
};
std::string_view Code(Hand hand);

// One reason, the rule that gave it, and what would have to change. Texts hold codes, numbers,
// places and party names of the request; never anything from the data.
struct Finding {
  Reason reason = Reason::kNoRuleMatched;
  Origin origin;       // empty where no rule is behind it
  std::string what;    // "aggregator in `US` is not in allow.aggregator_locations [`IE`]"
  std::string remedy;  // the nearest change that would flip this finding
  Hand hand = Hand::kNobody;
};

// A border of a country that was crossed on a legal ground.
struct Crossing {
  std::string who;  // "aggregator `main`"
  std::string from;
  std::string to;
  std::string law;        // code of the regime; empty if none of the dataset's holds at `from`
  std::string ground;     // "free flow (fact free-flow-eea)", "scc, rule ..."; empty: none
  int edpb_use_case = 0;  // EDPB Recommendations 01/2020, Annex 2; 0: none fits
};

// A legal fact that was read.
struct UsedFact {
  std::string id;
  std::string source;
  WallTime checked_on;
};

// What the gate must do with an allowed transfer.
struct Obligations {
  double clip_l2 = 0;                       // clip a delta to this, the smaller of plan and policy
  std::uint32_t min_contributors = 0;       // fewest contributors of any released sum
  std::uint64_t min_cohort = 0;             // fewest records behind any number
  WeightRule weights = WeightRule::kUnset;  // the stricter of plan and policy
  std::uint64_t round_to = 0;               // counts and weights to multiples of this; 1: exact
  std::uint32_t scale_bits = 0;             // the grid: units of 2^-scale_bits
  std::optional<Duration> audit_min;        // keep the log so long at least
  std::optional<Duration> update_max;       // keep an update so long at most
  std::optional<Duration> model_review;     // look at a model again after so long
  ErasureRule on_withdrawal = ErasureRule::kUnset;  // the least that follows a withdrawal
};

struct [[nodiscard]] Decision {
  Result result = Result::kDeny;
  // Nobody asked in earnest: it carries no permit and must not be logged as a decision.
  bool simulated = false;
  // Why, the weightiest first; never empty. Of an allowed transfer: one finding, PERMITTED, with
  // the site's rule.
  std::vector<Finding> findings;
  std::vector<Origin> rules;        // every rule that bore on it, sorted
  std::vector<UsedFact> facts;      // sorted by id
  std::vector<Crossing> crossings;  // borders of countries, in the order they were looked at
  Obligations obligations;          // meaningful if allowed
  std::optional<Permit> permit;     // set if and only if result is kAllow and it is not simulated

  // The first finding's: what goes over the wire and into logs.
  Reason Why() const { return findings.empty() ? Reason::kNoRuleMatched : findings.front().reason; }
};

// A matching deny beats any allow. Whatever cannot be read or evaluated denies: an unknown place,
// an absent number that a rule needs, an expired policy or fact. kHold means: everything but an
// approval is there. Approvals and the sandbox are the site's own, and are not asked for at the
// aggregator's points.
//
// At kEnrolment no dataset is named: kAllow means that the two may speak about at least one of the
// site's datasets; otherwise the findings are those of the first.
Decision Decide(const Effective& effective, const Transfer& transfer);

// What Decide would say, without the proof that it did: for dry runs.
Decision Simulate(const Effective& effective, const Transfer& transfer);

// The result that Decide would give, by the same checks, without reasons: for who asks very often.
Result Answer(const Effective& effective, const Transfer& transfer);

}  // namespace domicile::policy
