#include "policy/engine/meet.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "policy/engine/fold.h"
#include "policy/engine/internal/strict_defaults.h"

namespace domicile::policy {
namespace {

Origin OriginOf(const Policy& policy, std::string_view rule, std::uint32_t line) {
  return {policy.source, policy.identity.id, std::string(rule), policy.file, line};
}

template <typename T, typename U>
void Add(Clauses<T>& clauses, const std::optional<U>& value, const Origin& origin) {
  if (value) {
    clauses.Add(static_cast<T>(*value), origin);
  }
}

template <typename T>
void AddSome(Clauses<T>& clauses, const T& value, const Origin& origin) {
  if (!value.empty()) {
    clauses.Add(value, origin);
  }
}

void AddAllowAndDeny(const Rule& rule, const Origin& origin, Terms& terms) {
  Add(terms.aggregator_locations, rule.aggregator_locations, origin);
  Add(terms.aggregator_control, rule.aggregator_control, origin);
  Add(terms.transit, rule.transit, origin);
  Add(terms.recipients, rule.recipients, origin);
  Add(terms.contributors, rule.contributors, origin);
  Add(terms.models, rule.models, origin);
  Add(terms.trainers, rule.trainers, origin);
  Add(terms.update_kinds, rule.update_kinds, origin);
  Add(terms.purposes, rule.purposes, origin);
  Add(terms.aggregator_view, rule.aggregator_view, origin);
  Add(terms.derogations, rule.derogations, origin);
  AddSome(terms.deny_locations, rule.deny_locations, origin);
  AddSome(terms.deny_control, rule.deny_control, origin);
  AddSome(terms.deny_recipients, rule.deny_recipients, origin);
  AddSome(terms.deny_update_kinds, rule.deny_update_kinds, origin);
  Add(terms.deny_outputs, rule.deny_outputs, origin);
  Add(terms.deny_purposes, rule.deny_purposes, origin);
  Add(terms.evidence, rule.evidence, origin);
}

void AddNumbers(const Rule& rule, const Origin& origin, Terms& terms) {
  Add(terms.min_contributors, rule.min_contributors, origin);
  Add(terms.min_cohort, rule.min_cohort, origin);
  Add(terms.min_batch, rule.min_batch, origin);
  Add(terms.min_local_steps, rule.min_local_steps, origin);
  Add(terms.clip_l2, rule.clip_l2, origin);
  Add(terms.dp_mode, rule.dp_mode, origin);
  Add(terms.require_secagg, rule.require_secagg, origin);
  Add(terms.secagg_threshold, rule.secagg_threshold, origin);
  Add(terms.dp_unit, rule.dp_unit, origin);
  Add(terms.sampling, rule.sampling, origin);
  Add(terms.rounds, rule.rounds, origin);
  Add(terms.runs_per_day, rule.runs_per_day, origin);
  Add(terms.update_bytes, rule.update_bytes, origin);
  Add(terms.released_numbers_per_record, rule.released_numbers_per_record, origin);
  Add(terms.metrics, rule.metrics, origin);
  Add(terms.params_per_record, rule.params_per_record, origin);
  Add(terms.epsilon_total, rule.epsilon_total, origin);
  Add(terms.epsilon_per_run, rule.epsilon_per_run, origin);
  Add(terms.delta, rule.delta, origin);
  Add(terms.budget_window, rule.budget_window, origin);
  Add(terms.export_subjects_per_year, rule.export_subjects_per_year, origin);
}

void AddSettings(const Policy& policy, Terms& terms) {
  Add(terms.model_recipients, policy.model_recipients,
      OriginOf(policy, "[model]", policy.model_line));
  const Origin sandbox = OriginOf(policy, "[sandbox]", policy.sandbox_line);
  Add(terms.sandbox_network, policy.sandbox_network, sandbox);
  Add(terms.sandbox_profile, policy.sandbox_profile, sandbox);
  Add(terms.weights, policy.weights, OriginOf(policy, "[update]", policy.weights_line));
  if (policy.approvals) {
    const Origin origin = OriginOf(policy, "[approvals]", policy.approvals->line);
    std::map<ApprovalRole, WantedApproval> required;
    for (const RequiredApproval& approval : policy.approvals->required) {
      WantedApproval& wanted = required[approval.role];
      wanted.count = std::max(wanted.count, approval.count);
      wanted.distinct_org = wanted.distinct_org || approval.distinct_org;
    }
    terms.approvals.Add(std::move(required), origin);
    Add(terms.approval_max_age, policy.approvals->max_age, origin);
  }
  const Origin retention = OriginOf(policy, "[retention]", policy.retention.line);
  Add(terms.audit_min, policy.retention.audit_min, retention);
  Add(terms.update_max, policy.retention.update_max, retention);
  Add(terms.model_review, policy.retention.model_review, retention);
  Add(terms.on_withdrawal, policy.on_withdrawal,
      OriginOf(policy, "[erasure]", policy.erasure_line));
  const Origin audit = OriginOf(policy, "[audit]", policy.audit.line);
  Add(terms.witnesses_min, policy.audit.witnesses_min, audit);
  Add(terms.max_unwitnessed_age, policy.audit.max_unwitnessed_age, audit);
  Add(terms.max_skew, policy.max_skew, OriginOf(policy, "[time]", policy.time_line));
}

DatasetTraits TraitsOf(const PolicyDataset& dataset) {
  const auto until = [](const std::optional<DocumentRef>& document) {
    return document ? std::optional<WallTime>(document->valid_until) : std::nullopt;
  };
  return {.regimes = dataset.regimes,
          .categories = dataset.categories,
          .subjects_count = dataset.subjects_count,
          .is_special = dataset.IsSpecialCategory(),
          .is_deidentified = dataset.lawful_basis == "hipaa-deidentified",
          .dpia = until(dataset.dpia),
          .tia = until(dataset.tia),
          .permit = until(dataset.permit),
          .baa = until(dataset.baa)};
}

void AddDataset(const Policy& policy, const PolicyDataset& dataset, const Terms& every,
                Terms& terms) {
  const Origin origin = OriginOf(policy, "dataset " + dataset.alias.text(), dataset.line);
  terms.purposes.Add(dataset.purposes, origin);
  terms.traits.Add(TraitsOf(dataset), origin);
  std::set<TransferGround> grounds;
  bool has_rule = false;
  for (const Rule& rule : policy.rules) {
    if (!rule.dataset || *rule.dataset == dataset.alias) {
      has_rule = true;
      grounds.insert(rule.transfers.begin(), rule.transfers.end());
    }
  }
  terms.grounds.Add(std::move(grounds), origin);
  if (!has_rule) {
    terms.no_rule.insert(origin);
  }
  internal::AddStrictDefaults(every, dataset, *policy.site,
                              OriginOf(policy, internal::kStrictDefault, dataset.line), terms);
}

void SortFacts(ReadyTerms& ready) {
  for (const auto& clause : ready.terms.traits) {
    for (const Regime regime : clause.value.regimes) {
      ready.law[regime];
    }
  }
  for (const Fact& fact : ready.facts->facts) {
    const auto found = ready.law.find(fact.regime);
    if (found == ready.law.end()) {
      continue;
    }
    switch (fact.kind) {
      case FactKind::kNone:
      case FactKind::kBloc:
        break;
      case FactKind::kTerritory:
        found->second.territories.push_back(&fact);
        break;
      case FactKind::kFreeFlow:
      case FactKind::kAdequacy:
        found->second.grounds.push_back(&fact);
        break;
      case FactKind::kCountryOfConcern:
        found->second.concerns.push_back(&fact);
        break;
      case FactKind::kThreshold:
        found->second.thresholds.push_back(&fact);
        break;
      case FactKind::kNegativeList:
        found->second.negative_lists.push_back(&fact);
        break;
    }
  }
}

}  // namespace

bool Origin::IsStrictDefault() const { return rule == internal::kStrictDefault; }

std::string Print(const Origin& origin) {
  if (origin.policy.empty()) {
    return "no rule";
  }
  if (origin.source == PolicySource::kGrant) {
    return "grant " + origin.policy;
  }
  std::string text = std::string(Code(origin.source)) + " policy, " + origin.rule;
  if (!origin.file.empty()) {
    text += " (" + origin.file;
    text += origin.line == 0 ? ")" : ":" + std::to_string(origin.line) + ")";
  }
  return text;
}

void Terms::MeetWith(const Terms& other) {
  ForEach([](auto& mine, const auto& theirs) { mine.Join(theirs); }, *this, other);
  no_rule.insert(other.no_rule.begin(), other.no_rule.end());
}

struct Effective::Cache {
  Mutex mutex;
  std::map<DatasetAlias, std::shared_ptr<const ReadyTerms>> ready GUARDED_BY(mutex);
};

Effective::Effective() : facts_(std::make_shared<Facts>()), cache_(std::make_shared<Cache>()) {}

bool Effective::Knows(const DatasetAlias& alias) const {
  return !known_datasets_.empty() &&
         std::all_of(known_datasets_.begin(), known_datasets_.end(),
                     [&alias](const auto& clause) { return clause.value.contains(alias); });
}

ReadyTerms Effective::MakeReady(const DatasetAlias& alias) const {
  ReadyTerms ready{.terms = every_, .facts = facts_, .law = {}, .origins = {}, .conflicts = {}};
  if (const auto found = by_dataset_.find(alias); found != by_dataset_.end()) {
    ready.terms.MeetWith(found->second);
  }
  SortFacts(ready);
  std::vector<Origin>& origins = ready.origins;
  Terms::ForEach(
      [&origins](const auto& clauses) {
        for (const auto& clause : clauses) {
          origins.push_back(clause.origin);
        }
      },
      ready.terms);
  std::sort(origins.begin(), origins.end());
  origins.erase(std::unique(origins.begin(), origins.end()), origins.end());
  Terms::ForEach(
      [&origins](auto& clauses) {
        for (auto& clause : clauses) {
          const auto at = std::lower_bound(origins.begin(), origins.end(), clause.origin);
          clause.mark = static_cast<std::uint32_t>(at - origins.begin());
        }
      },
      ready.terms);
  ready.conflicts = FindConflicts(*this, ready.terms);
  return ready;
}

std::shared_ptr<const ReadyTerms> Effective::Ready(const DatasetAlias& alias) const {
  if (!Knows(alias)) {
    return nullptr;
  }
  const MutexLock lock(cache_->mutex);
  std::shared_ptr<const ReadyTerms>& ready = cache_->ready[alias];
  if (ready == nullptr) {
    ready = std::make_shared<const ReadyTerms>(MakeReady(alias));
  }
  return ready;
}

std::shared_ptr<const Terms> Effective::Find(const DatasetAlias& alias) const {
  const std::shared_ptr<const ReadyTerms> ready = Ready(alias);
  return {ready, ready ? &ready->terms : nullptr};  // keeps the whole alive
}

std::set<DatasetAlias> Effective::Datasets() const {
  return Intersection(known_datasets_).value_or(std::set<DatasetAlias>{});
}

std::vector<std::string> Effective::Conflicts(const DatasetAlias& alias) const {
  const std::shared_ptr<const ReadyTerms> ready = Ready(alias);
  return ready ? ready->conflicts : FindConflicts(*this, Terms());
}

std::uint32_t Effective::MinContributors(const DatasetAlias& alias) const {
  const std::shared_ptr<const ReadyTerms> ready = Ready(alias);
  return ready ? static_cast<std::uint32_t>(Greatest(ready->terms.min_contributors).value_or(0))
               : 0;
}

Duration Effective::BudgetWindow(const DatasetAlias& alias) const {
  const std::shared_ptr<const ReadyTerms> ready = Ready(alias);
  return ready ? Greatest(ready->terms.budget_window).value_or(kLifeOfDataset) : kLifeOfDataset;
}

Effective FromPolicy(const Policy& policy, std::shared_ptr<const Facts> facts) {
  Effective effective;
  effective.facts_ = std::move(facts);
  effective.sources_.insert({policy.source, policy.identity.id, policy.identity.version,
                             policy.identity.not_before, policy.identity.expires,
                             policy.identity.legal_facts, policy.identity.cooldown, policy.file});
  AddSettings(policy, effective.every_);
  for (const Rule& rule : policy.rules) {
    const Origin origin = OriginOf(policy, "rule " + rule.id, rule.line);
    Terms& terms = rule.dataset ? effective.by_dataset_[*rule.dataset] : effective.every_;
    AddAllowAndDeny(rule, origin, terms);
    AddNumbers(rule, origin, terms);
  }
  if (policy.source == PolicySource::kSite && policy.site) {
    const Origin site = OriginOf(policy, "[site]", 0);
    effective.site_jurisdictions_.Add(policy.site->jurisdiction.text(), site);
    effective.every_.site_evidence.Add(policy.site->location_evidence, site);
    std::set<DatasetAlias> known;
    for (const PolicyDataset& dataset : policy.datasets) {
      known.insert(dataset.alias);
      AddDataset(policy, dataset, effective.every_, effective.by_dataset_[dataset.alias]);
    }
    effective.known_datasets_.Add(std::move(known), OriginOf(policy, "[[dataset]]", 0));
  }
  return effective;
}

Effective FromPolicy(const Policy& policy, const Facts& facts) {
  return FromPolicy(policy, std::make_shared<const Facts>(facts));
}

Effective FromGrant(const GrantFacts& grant, std::shared_ptr<const Facts> facts) {
  Effective effective;
  effective.facts_ = std::move(facts);
  effective.sources_.insert(
      {PolicySource::kGrant, grant.id, 1, WallTime(), grant.not_after, "", std::nullopt, ""});
  const Origin origin = {PolicySource::kGrant, grant.id, "grant", "", 0};
  effective.known_datasets_.Add({grant.dataset}, origin);
  Terms& terms = effective.by_dataset_[grant.dataset];
  terms.models.Add({grant.plan}, origin);
  terms.trainers.Add({grant.trainer}, origin);
  return effective;
}

void Effective::MeetWith(const Effective& other) {
  DOMICILE_CHECK(facts_->id == other.facts_->id && facts_->version == other.facts_->version);
  sources_.insert(other.sources_.begin(), other.sources_.end());
  site_jurisdictions_.Join(other.site_jurisdictions_);
  known_datasets_.Join(other.known_datasets_);
  every_.MeetWith(other.every_);
  for (const auto& [alias, terms] : other.by_dataset_) {
    by_dataset_[alias].MeetWith(terms);
  }
  cache_ = std::make_shared<Cache>();
}

bool operator==(const Effective& a, const Effective& b) {
  return a.sources_ == b.sources_ && a.site_jurisdictions_ == b.site_jurisdictions_ &&
         a.known_datasets_ == b.known_datasets_ && a.every_ == b.every_ &&
         a.by_dataset_ == b.by_dataset_;
}

Effective Meet(const Effective& a, const Effective& b) {
  Effective met = a;
  met.MeetWith(b);
  return met;
}

Effective Meet(const Policy& federation, const Policy& aggregator, const Policy& site,
               const Facts& facts) {
  const auto shared = std::make_shared<const Facts>(facts);
  Effective met = FromPolicy(federation, shared);
  met.MeetWith(FromPolicy(aggregator, shared));
  met.MeetWith(FromPolicy(site, shared));
  return met;
}

Effective WithGrant(const Effective& effective, const GrantFacts& grant) {
  return Meet(effective, FromGrant(grant, effective.facts_));
}

}  // namespace domicile::policy
