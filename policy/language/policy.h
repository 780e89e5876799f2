// A policy as its author wrote it: one of the three files that are met into the effective policy.
// An absent optional means "this file has no opinion"; strict defaults are added by Meet, for site
// policies only. Page: docs/formats/policy.md.
#pragma once

#include <chrono>
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

// Written as `30s`, `12h`, `90d`, `6y`: see duration.h.
using Duration = std::chrono::seconds;
// The budget window that never ends, `life`.
inline constexpr Duration kLifeOfDataset = Duration::max();

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
  // The digest of the legal facts file this was written for, 64 hexadecimal digits: if set, that
  // file must be the one in force. Empty: any.
  std::string legal_facts;
  // The least time between the publication of a version that allows more, and its effect.
  std::optional<Duration> cooldown;
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
  std::set<Jurisdiction> subject_jurisdictions;          // whose people
  SubjectsCount subjects_count = SubjectsCount::kUnset;  // kUnset: unknown
  std::set<Regime> regimes;
  std::string lawful_basis;
  std::string special_category_basis;  // empty if no category is special
  std::set<Purpose> purposes;
  std::optional<DocumentRef> dpia;    // data protection impact assessment
  std::optional<DocumentRef> tia;     // transfer impact assessment
  std::optional<DocumentRef> permit;  // EHDS data permit
  std::optional<DocumentRef> baa;     // HIPAA business associate agreement
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
  std::optional<View> aggregator_view;            // at most
  std::optional<std::set<Area>> transit;          // of relays; absent: as aggregator_locations
  std::optional<std::set<std::string>> models;    // digests of plans; absent: what a grant names
  std::optional<std::set<std::string>> trainers;  // digests; absent: what a grant names
  // Sites that count toward min_contributors; absent: all of the roster.
  std::optional<std::set<std::string>> contributors;
  std::optional<bool> derogations;  // whether Art. 49 mechanisms count

  // deny.*
  std::set<Area> deny_locations;
  std::set<Area> deny_control;
  std::set<std::string> deny_recipients;
  std::set<UpdateKind> deny_update_kinds;
  // Absent and empty differ: a site that writes neither has the strict default.
  std::optional<std::set<Output>> deny_outputs;
  std::optional<std::set<Purpose>> deny_purposes;

  // require.*
  std::optional<LocationEvidence> evidence;  // of the receiver's place, at least

  // require.privacy
  std::optional<std::uint32_t> min_contributors;  // at least 3
  std::optional<std::uint64_t> min_cohort;        // records
  std::optional<std::uint32_t> min_batch;         // records
  std::optional<std::uint32_t> min_local_steps;
  std::optional<double> clip_l2;  // at most
  std::optional<DpMode> dp_mode;  // at least
  std::optional<bool> require_secagg;
  std::optional<double> secagg_threshold;  // more than this share must join to unmask; 0.5 to 0.99
  std::optional<DpUnit> dp_unit;           // at least
  std::optional<Sampling> sampling;        // at least

  // limit.*
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> runs_per_day;
  std::optional<std::uint64_t> update_bytes;  // of one update
  std::optional<double> released_numbers_per_record;
  std::optional<std::uint64_t> metrics;  // of one update
  std::optional<double> params_per_record;
  std::optional<double> epsilon_total;  // within a budget window
  std::optional<double> epsilon_per_run;
  std::optional<double> delta;
  std::optional<Duration> budget_window;  // or kLifeOfDataset; the longer is the stricter
  std::optional<std::uint64_t> export_subjects_per_year;

  std::vector<TransferGround> transfers;
  friend bool operator==(const Rule&, const Rule&) = default;
};

struct RequiredApproval {
  ApprovalRole role = ApprovalRole::kNone;
  std::uint32_t count = 0;
  bool distinct_org = false;  // each of another organisation
  friend bool operator==(const RequiredApproval&, const RequiredApproval&) = default;
};

// [approvals]. A present, empty `required` says in so many words: none.
struct ApprovalSection {
  std::vector<RequiredApproval> required;
  std::vector<std::string> keys;    // names of the keys that may approve; private
  std::optional<Duration> max_age;  // at most
  std::uint32_t line = 0;
  friend bool operator==(const ApprovalSection&, const ApprovalSection&) = default;
};

// [retention]. Line 0: the section is absent, as in the sections below.
struct RetentionSection {
  std::optional<Duration> audit_min;     // at least
  std::optional<Duration> update_max;    // at most
  std::optional<Duration> model_review;  // at most
  std::uint32_t line = 0;
  friend bool operator==(const RetentionSection&, const RetentionSection&) = default;
};

// [audit]
struct AuditSection {
  std::optional<std::uint32_t> witnesses_min;   // at least
  std::optional<Duration> max_unwitnessed_age;  // at most
  std::uint32_t line = 0;
  friend bool operator==(const AuditSection&, const AuditSection&) = default;
};

struct Policy {
  PolicySource source = PolicySource::kNone;
  std::string file;  // what explanations call it
  PolicyIdentity identity;
  std::optional<SiteSection> site;      // site policies only, and there always
  std::vector<PolicyDataset> datasets;  // site policies only
  std::vector<Rule> rules;
  std::optional<std::set<Area>> model_recipients;  // [model] recipients: of place and control
  std::uint32_t model_line = 0;
  std::optional<ApprovalSection> approvals;
  std::optional<SandboxNetwork> sandbox_network;  // at most
  std::optional<SandboxProfile> sandbox_profile;  // at least
  std::uint32_t sandbox_line = 0;
  std::optional<WeightRule> weights;  // at most this exact
  std::uint32_t weights_line = 0;
  RetentionSection retention;
  std::optional<ErasureRule> on_withdrawal;  // [erasure], at least
  std::uint32_t erasure_line = 0;
  AuditSection audit;
  std::optional<Duration> max_skew;  // [time], at most
  std::uint32_t time_line = 0;

  const PolicyDataset* Find(const DatasetAlias& alias) const;
  friend bool operator==(const Policy&, const Policy&) = default;
};

// The same policy without file name and lines: what two spellings of one policy have in common.
Policy WithoutLines(Policy policy);

}  // namespace domicile::policy
