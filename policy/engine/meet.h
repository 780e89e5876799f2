// The effective policy: what federation, aggregator and site allow together under the legal facts.
//
// It is kept as a list of clauses, each with the rule that made it; a transfer must satisfy every
// clause. Meeting is the union of clauses, so it is commutative, associative and idempotent, and
// one more policy can only ever deny more. The folded form (intersection, minimum, maximum, union:
// table in docs/formats/policy.md) is what is printed and digested.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "policy/language/facts.h"
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
  friend bool operator==(const Origin&, const Origin&) = default;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};
// `rule S-1 (site.policy.toml:31)`.
std::string Print(const Origin& origin);

// One statement and who made it.
template <typename T>
struct Clause {
  T value;
  Origin origin;
  friend bool operator==(const Clause&, const Clause&) = default;
  friend bool operator<(const Clause& a, const Clause& b) {
    return std::tie(a.value, a.origin) < std::tie(b.value, b.origin);
  }
};
template <typename T>
using Clauses = std::set<Clause<T>>;

// What holds for a dataset.
struct Terms {
  Clauses<std::set<Area>> aggregator_locations;
  Clauses<std::set<Area>> aggregator_control;
  Clauses<std::set<Area>> model_recipients;
  Clauses<std::set<std::string>> recipients;
  Clauses<std::set<UpdateKind>> update_kinds;
  Clauses<std::set<Purpose>> purposes;
  Clauses<View> aggregator_view;  // at most
  Clauses<std::set<Area>> deny_locations;
  Clauses<std::set<Area>> deny_control;
  Clauses<std::set<std::string>> deny_recipients;
  Clauses<std::set<UpdateKind>> deny_update_kinds;
  Clauses<std::uint64_t> min_contributors;  // at least
  Clauses<std::uint64_t> min_cohort;
  Clauses<std::uint64_t> min_batch;
  Clauses<std::uint64_t> min_local_steps;
  Clauses<double> clip_l2;        // at most
  Clauses<DpMode> dp_mode;        // at least
  Clauses<bool> require_secagg;   // or
  Clauses<std::uint64_t> rounds;  // at most
  Clauses<std::uint64_t> runs_per_day;
  Clauses<std::uint64_t> update_bytes;
  Clauses<double> released_numbers_per_record;
  Clauses<std::uint64_t> metrics;
  Clauses<double> params_per_record;
  Clauses<SandboxNetwork> sandbox_network;                   // at most
  Clauses<WeightRule> weights;                               // at most
  Clauses<std::map<ApprovalRole, std::uint32_t>> approvals;  // at least, role by role
  // Of the site policies that describe the dataset.
  Clauses<std::set<Regime>> regimes;
  Clauses<bool> special_category;
  Clauses<std::optional<WallTime>> dpia_valid_until;  // empty: there is no document
  // The legal grounds that one site policy states for the dataset, in all its rules together: a
  // border needs one that fits, from each policy.
  Clauses<std::set<TransferGround>> grounds;
  std::set<Origin> no_rule;  // site policies without a rule for the dataset

  void MeetWith(const Terms& other);
};

// Immutable once made.
class Effective {
 public:
  // What holds for a dataset; a dataset that a site policy does not describe has no terms, and is
  // denied.
  std::optional<Terms> Find(const DatasetAlias& alias) const;

  // Canonical JSON of the folded policy, facts included and origins left out: the bytes whose
  // SHA-256 is the effective policy digest. Both ends get the same text.
  std::string Text() const;

  // Rules that leave nothing to allow for a dataset: each names the two lines that conflict. Such a
  // dataset is denied with POLICY-UNSATISFIABLE.
  std::vector<std::string> Conflicts(const DatasetAlias& alias) const;
  // The same for every dataset; for loading. Errors: kInvalidArgument with the first conflict.
  Status CheckSatisfiable() const;

  // The greatest minimum of contributors for a dataset, or 0 if it has no terms.
  std::uint32_t MinContributors(const DatasetAlias& alias) const;

  const Facts& LegalFacts() const { return facts_; }

  // One of the policies that were met.
  struct Source {
    PolicySource source = PolicySource::kNone;
    std::string id;
    std::uint64_t version = 0;
    WallTime not_before;
    WallTime expires;
    std::string file;
    friend auto operator<=>(const Source&, const Source&) = default;
  };
  const std::set<Source>& Sources() const { return sources_; }
  const Clauses<std::string>& SiteJurisdictions() const { return site_jurisdictions_; }
  const Clauses<std::set<DatasetAlias>>& KnownDatasets() const { return known_datasets_; }

 private:
  friend Effective FromPolicy(const Policy& policy, const Facts& facts);
  friend Effective Meet(const Effective& a, const Effective& b);

  Facts facts_;
  std::set<Source> sources_;
  Clauses<std::string> site_jurisdictions_;
  Clauses<std::set<DatasetAlias>> known_datasets_;  // one clause per site policy
  Terms every_;                                     // of rules that name no dataset
  std::map<DatasetAlias, Terms> by_dataset_;
};

// The clauses of one policy; a site policy gets the strict defaults. Alone, a federation or
// aggregator policy allows nothing: only a site can say yes for its data. Pure.
Effective FromPolicy(const Policy& policy, const Facts& facts);

// Both hold. The two must have been made with the same facts.
Effective Meet(const Effective& a, const Effective& b);

// The effective policy of one site. `site` is its policy or its statement.
Effective Meet(const Policy& federation, const Policy& aggregator, const Policy& site,
               const Facts& facts);

}  // namespace domicile::policy
