// Clauses: what the rules of all sources say, each with the rule that said it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "policy/language/policy.h"

namespace domicile::policy {

// The rule behind a clause. For a strict default, `rule` is "strict default" and the line is that
// of the dataset it was filled in for.
struct Origin {
  PolicySource source = PolicySource::kNone;
  std::string policy;  // id
  std::string rule;
  std::string file;
  std::uint32_t line = 0;

  bool IsStrictDefault() const;
  friend bool operator==(const Origin&, const Origin&) = default;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};
// `site policy, rule S-1 (site.policy.toml:31)`.
std::string Print(const Origin& origin);

// One statement and who made it.
template <typename T>
struct Clause {
  T value;
  Origin origin;
  // The place of `origin` among all origins of a dataset; set when its terms are made ready, and no
  // part of what the clause says.
  std::uint32_t mark = 0;
  friend bool operator==(const Clause& a, const Clause& b) {
    return a.value == b.value && a.origin == b.origin;
  }
  friend bool operator<(const Clause& a, const Clause& b) {
    return std::tie(a.value, a.origin) < std::tie(b.value, b.origin);
  }
};

// A set of clauses, sorted by value.
template <typename T>
class Clauses {
 public:
  void Add(T value, const Origin& origin) {
    Clause<T> clause{std::move(value), origin};
    const auto at = std::lower_bound(clauses_.begin(), clauses_.end(), clause);
    if (at == clauses_.end() || !(*at == clause)) {
      clauses_.insert(at, std::move(clause));
    }
  }
  // The union of both.
  void Join(const Clauses& other) {
    if (other.clauses_.empty()) {
      return;
    }
    if (clauses_.empty()) {
      clauses_ = other.clauses_;
      return;
    }
    std::vector<Clause<T>> all;
    all.reserve(clauses_.size() + other.clauses_.size());
    std::set_union(std::make_move_iterator(clauses_.begin()),
                   std::make_move_iterator(clauses_.end()), other.clauses_.begin(),
                   other.clauses_.end(), std::back_inserter(all));
    clauses_ = std::move(all);
  }

  bool empty() const { return clauses_.empty(); }
  std::size_t size() const { return clauses_.size(); }
  auto begin() const { return clauses_.begin(); }
  auto end() const { return clauses_.end(); }
  auto begin() { return clauses_.begin(); }
  auto end() { return clauses_.end(); }
  const Clause<T>& Least() const { return clauses_.front(); }
  const Clause<T>& Greatest() const { return clauses_.back(); }

  friend bool operator==(const Clauses&, const Clauses&) = default;

 private:
  std::vector<Clause<T>> clauses_;
};

// How many approvals a role must give, and whether each from another organisation.
struct WantedApproval {
  std::uint32_t count = 0;
  bool distinct_org = false;
  friend auto operator<=>(const WantedApproval&, const WantedApproval&) = default;
};

// What a site policy says a dataset is.
struct DatasetTraits {
  std::set<Regime> regimes;
  std::set<Category> categories;
  SubjectsCount subjects_count = SubjectsCount::kUnset;
  bool is_special = true;
  bool is_deidentified = false;  // the lawful basis is `hipaa-deidentified`
  // The instants from which the documents no longer hold; empty: there is no document.
  std::optional<WallTime> dpia;
  std::optional<WallTime> tia;
  std::optional<WallTime> permit;
  std::optional<WallTime> baa;
  friend auto operator<=>(const DatasetTraits&, const DatasetTraits&) = default;
};

// What holds for a dataset.
struct Terms {
  Clauses<std::set<Area>> aggregator_locations;
  Clauses<std::set<Area>> aggregator_control;
  Clauses<std::set<Area>> model_recipients;
  Clauses<std::set<Area>> transit;
  Clauses<std::set<std::string>> recipients;
  Clauses<std::set<std::string>> contributors;
  Clauses<std::set<std::string>> models;
  Clauses<std::set<std::string>> trainers;
  Clauses<std::set<UpdateKind>> update_kinds;
  Clauses<std::set<Purpose>> purposes;
  Clauses<View> aggregator_view;  // at most
  Clauses<bool> derogations;      // and
  Clauses<std::set<Area>> deny_locations;
  Clauses<std::set<Area>> deny_control;
  Clauses<std::set<std::string>> deny_recipients;
  Clauses<std::set<UpdateKind>> deny_update_kinds;
  Clauses<std::set<Output>> deny_outputs;
  Clauses<std::set<Purpose>> deny_purposes;
  Clauses<LocationEvidence> evidence;       // at least
  Clauses<LocationEvidence> site_evidence;  // at least, of the site's own place
  Clauses<std::uint64_t> min_contributors;  // at least
  Clauses<std::uint64_t> min_cohort;
  Clauses<std::uint64_t> min_batch;
  Clauses<std::uint64_t> min_local_steps;
  Clauses<double> clip_l2;           // at most
  Clauses<DpMode> dp_mode;           // at least
  Clauses<bool> require_secagg;      // or
  Clauses<double> secagg_threshold;  // more than
  Clauses<DpUnit> dp_unit;           // at least
  Clauses<Sampling> sampling;        // at least
  Clauses<std::uint64_t> rounds;     // at most
  Clauses<std::uint64_t> runs_per_day;
  Clauses<std::uint64_t> update_bytes;
  Clauses<double> released_numbers_per_record;
  Clauses<std::uint64_t> metrics;
  Clauses<double> params_per_record;
  Clauses<double> epsilon_total;
  Clauses<double> epsilon_per_run;
  Clauses<double> delta;
  Clauses<Duration> budget_window;  // the longest
  Clauses<std::uint64_t> export_subjects_per_year;
  Clauses<SandboxNetwork> sandbox_network;                    // at most
  Clauses<SandboxProfile> sandbox_profile;                    // at least
  Clauses<WeightRule> weights;                                // at most
  Clauses<std::map<ApprovalRole, WantedApproval>> approvals;  // at least, role by role
  Clauses<Duration> approval_max_age;                         // at most
  Clauses<Duration> audit_min;                                // at least
  Clauses<Duration> update_max;                               // at most
  Clauses<Duration> model_review;                             // at most
  Clauses<ErasureRule> on_withdrawal;                         // at least
  Clauses<std::uint64_t> witnesses_min;                       // at least
  Clauses<Duration> max_unwitnessed_age;                      // at most
  Clauses<Duration> max_skew;                                 // at most
  Clauses<DatasetTraits> traits;  // of the site policies that describe the dataset
  // The legal grounds that one site policy states for the dataset, in all its rules together: a
  // border needs one that fits, from each policy.
  Clauses<std::set<TransferGround>> grounds;
  std::set<Origin> no_rule;  // site policies without a rule for the dataset

  void MeetWith(const Terms& other);
  friend bool operator==(const Terms&, const Terms&) = default;

  // Calls f(terms.key...) once for each kind of clause, with the member of each of `all`.
  template <typename F, typename... All>
  static void ForEach(F f, All&... all) {
    f(all.aggregator_locations...), f(all.aggregator_control...), f(all.model_recipients...);
    f(all.transit...), f(all.recipients...), f(all.contributors...), f(all.models...);
    f(all.trainers...), f(all.update_kinds...), f(all.purposes...), f(all.aggregator_view...);
    f(all.derogations...), f(all.deny_locations...), f(all.deny_control...);
    f(all.deny_recipients...), f(all.deny_update_kinds...), f(all.deny_outputs...);
    f(all.deny_purposes...), f(all.evidence...), f(all.site_evidence...);
    f(all.min_contributors...), f(all.min_cohort...), f(all.min_batch...);
    f(all.min_local_steps...), f(all.clip_l2...), f(all.dp_mode...), f(all.require_secagg...);
    f(all.secagg_threshold...), f(all.dp_unit...), f(all.sampling...), f(all.rounds...);
    f(all.runs_per_day...), f(all.update_bytes...), f(all.released_numbers_per_record...);
    f(all.metrics...), f(all.params_per_record...), f(all.epsilon_total...);
    f(all.epsilon_per_run...), f(all.delta...), f(all.budget_window...);
    f(all.export_subjects_per_year...), f(all.sandbox_network...), f(all.sandbox_profile...);
    f(all.weights...), f(all.approvals...), f(all.approval_max_age...), f(all.audit_min...);
    f(all.update_max...), f(all.model_review...), f(all.on_withdrawal...);
    f(all.witnesses_min...), f(all.max_unwitnessed_age...), f(all.max_skew...);
    f(all.traits...), f(all.grounds...);
  }
};

}  // namespace domicile::policy
