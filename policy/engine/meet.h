// The effective policy: what federation, aggregator, site and grant allow together under the legal
// facts.
//
// It is kept as a list of clauses, each with the rule that made it; a transfer must satisfy every
// clause. Meeting is the union of clauses, so it is commutative, associative and idempotent, and
// one more policy can only ever deny more. The folded form (intersection, minimum, maximum, union:
// table in docs/formats/policy.md) is what is printed and digested.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "policy/engine/terms.h"
#include "policy/language/facts.h"
#include "policy/language/policy.h"

namespace domicile::policy {

// The facts of one regime, by what they say.
struct RegimeFacts {
  std::vector<const Fact*> territories;
  std::vector<const Fact*> grounds;  // free flow and adequacy
  std::vector<const Fact*> concerns;
  std::vector<const Fact*> thresholds;
  std::vector<const Fact*> negative_lists;
};

// A dataset's terms, put together once for all decisions about it. Immutable.
struct ReadyTerms {
  Terms terms;
  std::shared_ptr<const Facts> facts;  // what `law` points into
  std::map<Regime, RegimeFacts> law;   // for every regime of the dataset
  std::vector<Origin> origins;         // of all clauses; a clause's `mark` is its place here
  std::vector<std::string> conflicts;  // as Effective::Conflicts
};

// What a grant narrows: one plan, one trainer, one dataset, until a date.
struct GrantFacts {
  std::string id;  // what explanations call it: its digest
  DatasetAlias dataset;
  std::string plan;     // 64 hexadecimal digits
  std::string trainer;  // likewise
  WallTime not_after;
};

// Immutable once made. Thread-safe.
class Effective {
 public:
  Effective();

  // What holds for a dataset; null for one that a site policy does not describe, which is denied.
  std::shared_ptr<const Terms> Find(const DatasetAlias& alias) const;
  // The same, as decisions use it.
  std::shared_ptr<const ReadyTerms> Ready(const DatasetAlias& alias) const;

  // The datasets that every site policy describes.
  std::set<DatasetAlias> Datasets() const;

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
  // How far back the ledger must add up the epsilon of a dataset; kLifeOfDataset: all of it.
  Duration BudgetWindow(const DatasetAlias& alias) const;

  const Facts& LegalFacts() const { return *facts_; }

  // One of the policies that were met.
  struct Source {
    PolicySource source = PolicySource::kNone;
    std::string id;
    std::uint64_t version = 0;
    WallTime not_before;
    WallTime expires;
    std::string legal_facts;  // the digest of the facts it was written for; empty: any
    std::optional<Duration> cooldown;
    std::string file;
    friend auto operator<=>(const Source&, const Source&) = default;
  };
  const std::set<Source>& Sources() const { return sources_; }
  const Clauses<std::string>& SiteJurisdictions() const { return site_jurisdictions_; }
  const Clauses<std::set<DatasetAlias>>& KnownDatasets() const { return known_datasets_; }

 private:
  // The same clauses of the same sources.
  friend bool operator==(const Effective& a, const Effective& b);
  friend Effective FromPolicy(const Policy& policy, std::shared_ptr<const Facts> facts);
  friend Effective FromGrant(const GrantFacts& grant, std::shared_ptr<const Facts> facts);
  friend Effective Meet(const Effective& a, const Effective& b);
  friend Effective Meet(const Policy& federation, const Policy& aggregator, const Policy& site,
                        const Facts& facts);
  friend Effective WithGrant(const Effective& effective, const GrantFacts& grant);

  // What has been made ready so far.
  struct Cache;

  bool Knows(const DatasetAlias& alias) const;
  ReadyTerms MakeReady(const DatasetAlias& alias) const;
  void MeetWith(const Effective& other);

  // shared_ptr: all that was met with the same facts holds the same copy.
  std::shared_ptr<const Facts> facts_;
  std::set<Source> sources_;
  Clauses<std::string> site_jurisdictions_;
  Clauses<std::set<DatasetAlias>> known_datasets_;  // one clause per site policy or grant
  Terms every_;                                     // of rules that name no dataset
  std::map<DatasetAlias, Terms> by_dataset_;
  // shared_ptr: copies of one effective policy share it.
  std::shared_ptr<Cache> cache_;
};

// The clauses of one policy; a site policy gets the strict defaults. Alone, a federation or
// aggregator policy allows nothing: only a site can say yes for its data. Pure.
Effective FromPolicy(const Policy& policy, std::shared_ptr<const Facts> facts);
Effective FromPolicy(const Policy& policy, const Facts& facts);

// The clauses of a grant: a narrowing, which alone allows nothing.
Effective FromGrant(const GrantFacts& grant, std::shared_ptr<const Facts> facts);

// Both hold. The two must have been made with the same facts.
Effective Meet(const Effective& a, const Effective& b);

// The effective policy of one site. `site` is its policy or its statement.
Effective Meet(const Policy& federation, const Policy& aggregator, const Policy& site,
               const Facts& facts);

// What a grant leaves of it. The digest of the effective policy, which the grant itself names, is
// taken without.
Effective WithGrant(const Effective& effective, const GrantFacts& grant);

}  // namespace domicile::policy
