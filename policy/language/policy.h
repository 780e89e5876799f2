// A policy as its author wrote it: one of the three files that are met into the effective policy.
// An absent optional means "this file has no opinion"; strict defaults are added by Meet, for site
// policies only. Page: docs/formats/policy.md.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "policy/language/jurisdiction.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy {

// A document that must exist: only its name, digest and date are checked, never its content.
struct DocumentRef {
  std::string id;      // private: not in a statement
  std::string sha256;  // 64 hexadecimal digits; private
  WallTime valid_until;
  friend bool operator==(const DocumentRef&, const DocumentRef&) = default;
};

struct PolicyIdentity {
  std::string id;  // `site/zurich-basel`
  std::uint64_t version = 0;
  std::uint32_t schema = 0;
  WallTime not_before;
  WallTime expires;                  // at most 366 days after not_before
  std::string issuer;                // private
  std::vector<std::string> signers;  // names of keys; private
  std::uint32_t threshold = 1;
  friend bool operator==(const PolicyIdentity&, const PolicyIdentity&) = default;
};

struct SiteSection {
  Jurisdiction jurisdiction;
  std::set<Jurisdiction> control_jurisdictions;  // of owner, parent, key custodian
  LocationEvidence location_evidence = LocationEvidence::kCertificate;
  friend bool operator==(const SiteSection&, const SiteSection&) = default;
};

struct PolicyDataset {
  DatasetAlias alias;  // the only name that travels
  std::string name;    // private
  std::set<Category> categories;
  std::set<Jurisdiction> subject_jurisdictions;  // whose people
  std::set<Regime> regimes;
  std::string lawful_basis;
  std::string special_category_basis;  // empty if no category is special
  std::set<Purpose> purposes;
  std::optional<DocumentRef> dpia;
  std::uint32_t line = 0;

  bool IsSpecialCategory() const;
  friend bool operator==(const PolicyDataset&, const PolicyDataset&) = default;
};

// The legal ground of a border: which document or decision carries transfers to an area. Stated by
// sites only: it is the exporter who must have it.
struct TransferGround {
  Area to;
  Mechanism mechanism = Mechanism::kNone;
  std::string ref;                      // private
  std::optional<WallTime> valid_until;  // always set but for adequacy
  std::string importer;                 // the organisation that receives; empty: any there
  std::uint32_t line = 0;
  friend bool operator==(const TransferGround&, const TransferGround&) = default;
  friend auto operator<=>(const TransferGround&, const TransferGround&) = default;
};

// One [[rule]]. All rules of all sources that match a dataset hold together: a second rule can only
// tighten, never widen.
struct Rule {
  std::string id;
  std::optional<DatasetAlias> dataset;  // absent: every dataset
  std::uint32_t line = 0;

  // allow.*
  std::optional<std::set<Area>> aggregator_locations;
  std::optional<std::set<Area>> aggregator_control;
  std::optional<std::set<std::string>> recipients;  // `sites`, `operator`, a site, `operator/NAME`
  std::optional<std::set<UpdateKind>> update_kinds;
  std::optional<std::set<Purpose>> purposes;
  std::optional<View> aggregator_view;  // at most

  // deny.*
  std::set<Area> deny_locations;
  std::set<Area> deny_control;
  std::set<std::string> deny_recipients;
  std::set<UpdateKind> deny_update_kinds;

  // require.privacy
  std::optional<std::uint32_t> min_contributors;  // at least 3
  std::optional<std::uint64_t> min_cohort;        // records
  std::optional<std::uint32_t> min_batch;         // records
  std::optional<std::uint32_t> min_local_steps;
  std::optional<double> clip_l2;  // at most
  std::optional<DpMode> dp_mode;  // at least
  std::optional<bool> require_secagg;

  // limit.*
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> runs_per_day;
  std::optional<std::uint64_t> update_bytes;  // of one update
  std::optional<double> released_numbers_per_record;
  std::optional<std::uint64_t> metrics;  // of one update
  std::optional<double> params_per_record;

  std::vector<TransferGround> transfers;
  friend bool operator==(const Rule&, const Rule&) = default;
};

struct RequiredApproval {
  ApprovalRole role = ApprovalRole::kNone;
  std::uint32_t count = 0;
  friend bool operator==(const RequiredApproval&, const RequiredApproval&) = default;
};

// [approvals]. A present, empty `required` says in so many words: none.
struct ApprovalSection {
  std::vector<RequiredApproval> required;
  std::vector<std::string> keys;  // names of the keys that may approve; private
  std::uint32_t line = 0;
  friend bool operator==(const ApprovalSection&, const ApprovalSection&) = default;
};

struct Policy {
  PolicySource source = PolicySource::kNone;
  std::string file;  // what explanations call it
  PolicyIdentity identity;
  std::optional<SiteSection> site;      // site policies only, and there always
  std::vector<PolicyDataset> datasets;  // site policies only
  std::vector<Rule> rules;
  std::optional<std::set<Area>> model_recipients;  // [model] recipients: where models may go
  std::uint32_t model_line = 0;
  std::optional<ApprovalSection> approvals;
  std::optional<SandboxNetwork> sandbox_network;  // at most
  std::uint32_t sandbox_line = 0;
  std::optional<WeightRule> weights;  // at most this exact
  std::uint32_t weights_line = 0;

  const PolicyDataset* Find(const DatasetAlias& alias) const;
};

}  // namespace domicile::policy
