// What carries a border: facts of the law, and mechanisms that the exporter states.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "policy/engine/internal/coverage.h"
#include "policy/engine/meet.h"

namespace domicile::policy::internal {

// What one regime, or documents alone, say about one border.
struct Ground {
  bool by_fact = false;  // free flow, or an adequacy decision that is relied on: readable may pass
  bool by_document = false;   // a mechanism of another kind: not for readable contributions
  bool by_safeguard = false;  // one that a transfer impact assessment must accompany
  bool has_adequacy = false;  // a decision for all is in force, but no rule relies on it
  bool has_expired_fact = false;
  bool has_expired_document = false;
  bool has_derogation = false;     // one is stated, and no rule lets it count
  bool is_over_threshold = false;  // so many people that what is stated does not count
  bool is_unknown = false;         // a bloc could not be told
  Origin origin;                   // the entry that carries it, or where one is missing
  std::string text;                // "free flow (fact free-flow-eea)"
};

// One border at one time. Borrows everything.
struct BorderView {
  Coverage& coverage;
  const Jurisdiction& from;
  const Jurisdiction& to;
  const std::string& importer;  // the organisation that receives
  bool derogations_count = false;
  std::set<std::string>* used = nullptr;  // ids of facts that were read; may be null

  const Facts& facts() const { return coverage.facts(); }
  WallTime now() const { return coverage.now(); }
  bool LeavesCountry() const { return from.Country() != to.Country(); }
  // Whether leaving `from` for `to` is an export under the regime. Without a fact that says where
  // the regime holds, it is.
  bool IsExport(const RegimeFacts& law) const;
};

Ground FindGround(const BorderView& border, const RegimeFacts& law, const DatasetTraits& traits,
                  const Clause<std::set<TransferGround>>& stated);

// A mechanism by document, where no regime of the dataset holds at the exporter.
Ground FindDocumentGround(const BorderView& border, const Clause<std::set<TransferGround>>& stated);

}  // namespace domicile::policy::internal
