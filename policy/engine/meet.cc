#include "policy/engine/meet.h"

#include <algorithm>
#include <utility>

#include "policy/engine/fold.h"

namespace domicile::policy {
namespace {

constexpr std::string_view kStrictDefault = "strict default";

// The strict defaults of a site policy (docs/formats/policy.md).
constexpr std::uint64_t kDefaultMinContributors = 5;
constexpr std::uint64_t kDefaultMinCohort = 10;
constexpr std::uint64_t kDefaultMinBatch = 64;
constexpr std::uint64_t kDefaultMinLocalSteps = 5;
constexpr double kDefaultClipL2 = 1.0;
constexpr double kDefaultNumbersPerRecord = 0.33;

Origin OriginOf(const Policy& policy, std::string_view rule, std::uint32_t line) {
  return {policy.source, policy.identity.id, std::string(rule), policy.file, line};
}

template <typename T, typename U>
void Add(Clauses<T>& clauses, const std::optional<U>& value, const Origin& origin) {
  if (value) {
    clauses.insert({static_cast<T>(*value), origin});
  }
}

template <typename T>
void AddSome(Clauses<T>& clauses, const T& value, const Origin& origin) {
  if (!value.empty()) {
    clauses.insert({value, origin});
  }
}

void AddRule(const Rule& rule, const Origin& origin, Terms& terms) {
  Add(terms.aggregator_locations, rule.aggregator_locations, origin);
  Add(terms.aggregator_control, rule.aggregator_control, origin);
  Add(terms.recipients, rule.recipients, origin);
  Add(terms.update_kinds, rule.update_kinds, origin);
  Add(terms.purposes, rule.purposes, origin);
  Add(terms.aggregator_view, rule.aggregator_view, origin);
  AddSome(terms.deny_locations, rule.deny_locations, origin);
  AddSome(terms.deny_control, rule.deny_control, origin);
  AddSome(terms.deny_recipients, rule.deny_recipients, origin);
  AddSome(terms.deny_update_kinds, rule.deny_update_kinds, origin);
  Add(terms.min_contributors, rule.min_contributors, origin);
  Add(terms.min_cohort, rule.min_cohort, origin);
  Add(terms.min_batch, rule.min_batch, origin);
  Add(terms.min_local_steps, rule.min_local_steps, origin);
  Add(terms.clip_l2, rule.clip_l2, origin);
  Add(terms.dp_mode, rule.dp_mode, origin);
  Add(terms.require_secagg, rule.require_secagg, origin);
  Add(terms.rounds, rule.rounds, origin);
  Add(terms.runs_per_day, rule.runs_per_day, origin);
  Add(terms.update_bytes, rule.update_bytes, origin);
  Add(terms.released_numbers_per_record, rule.released_numbers_per_record, origin);
  Add(terms.metrics, rule.metrics, origin);
  Add(terms.params_per_record, rule.params_per_record, origin);
}

void AddSettings(const Policy& policy, Terms& terms) {
  Add(terms.model_recipients, policy.model_recipients,
      OriginOf(policy, "[model]", policy.model_line));
  Add(terms.sandbox_network, policy.sandbox_network,
      OriginOf(policy, "[sandbox]", policy.sandbox_line));
  Add(terms.weights, policy.weights, OriginOf(policy, "[update]", policy.weights_line));
  if (policy.approvals) {
    std::map<ApprovalRole, std::uint32_t> required;
    for (const RequiredApproval& approval : policy.approvals->required) {
      required[approval.role] = std::max(required[approval.role], approval.count);
    }
    terms.approvals.insert(
        {std::move(required), OriginOf(policy, "[approvals]", policy.approvals->line)});
  }
}

template <typename T>
void Default(const Clauses<T>& in_every, Clauses<T>& clauses, T value, const Origin& origin) {
  if (in_every.empty() && clauses.empty()) {
    clauses.insert({std::move(value), origin});
  }
}

// What a site policy says about a dataset by saying nothing.
void AddDefaults(const Terms& every, const PolicyDataset& dataset, const SiteSection& site,
                 const Origin& origin, Terms& terms) {
  // A country code of the official list always parses.
  const std::set<Area> own = {Area::Of(*Jurisdiction::Parse(site.jurisdiction.Country()))};
  Default(every.aggregator_locations, terms.aggregator_locations, own, origin);
  Default(every.aggregator_control, terms.aggregator_control, own, origin);
  Default(every.model_recipients, terms.model_recipients, own, origin);
  Default(every.recipients, terms.recipients, {}, origin);
  Default(every.update_kinds, terms.update_kinds, {UpdateKind::kDeltaMasked}, origin);
  Default(every.aggregator_view, terms.aggregator_view, View::kAggregateOnly, origin);
  Default(every.min_contributors, terms.min_contributors, kDefaultMinContributors, origin);
  Default(every.min_cohort, terms.min_cohort, kDefaultMinCohort, origin);
  Default(every.min_batch, terms.min_batch, kDefaultMinBatch, origin);
  Default(every.min_local_steps, terms.min_local_steps, kDefaultMinLocalSteps, origin);
  Default(every.clip_l2, terms.clip_l2, kDefaultClipL2, origin);
  Default(every.dp_mode, terms.dp_mode,
          dataset.IsSpecialCategory() ? DpMode::kEnforced : DpMode::kNone, origin);
  Default(every.require_secagg, terms.require_secagg, true, origin);
  Default(every.rounds, terms.rounds, std::uint64_t{0}, origin);
  Default(every.runs_per_day, terms.runs_per_day, std::uint64_t{0}, origin);
  Default(every.update_bytes, terms.update_bytes, std::uint64_t{0}, origin);
  Default(every.released_numbers_per_record, terms.released_numbers_per_record,
          kDefaultNumbersPerRecord, origin);
  Default(every.metrics, terms.metrics, std::uint64_t{0}, origin);
  Default(every.params_per_record, terms.params_per_record, kDefaultNumbersPerRecord, origin);
  Default(every.sandbox_network, terms.sandbox_network, SandboxNetwork::kNone, origin);
  Default(every.weights, terms.weights, WeightRule::kEqual, origin);
  Default(every.approvals, terms.approvals,
          {{ApprovalRole::kDpo, 1U}, {ApprovalRole::kOperator, 1U}}, origin);
}

void AddDataset(const Policy& policy, const PolicyDataset& dataset, const Terms& every,
                Terms& terms) {
  const Origin origin = OriginOf(policy, "dataset " + dataset.alias.text(), dataset.line);
  terms.purposes.insert({dataset.purposes, origin});
  terms.regimes.insert({dataset.regimes, origin});
  terms.special_category.insert({dataset.IsSpecialCategory(), origin});
  terms.dpia_valid_until.insert(
      {dataset.dpia ? std::optional<WallTime>(dataset.dpia->valid_until) : std::nullopt, origin});
  std::set<TransferGround> grounds;
  bool has_rule = false;
  for (const Rule& rule : policy.rules) {
    if (!rule.dataset || *rule.dataset == dataset.alias) {
      has_rule = true;
      grounds.insert(rule.transfers.begin(), rule.transfers.end());
    }
  }
  terms.grounds.insert({std::move(grounds), origin});
  if (!has_rule) {
    terms.no_rule.insert(origin);
  }
  AddDefaults(every, dataset, *policy.site, OriginOf(policy, kStrictDefault, dataset.line), terms);
}

}  // namespace

std::string Print(const Origin& origin) {
  if (origin.policy.empty()) {
    return "no rule";
  }
  std::string text = std::string(Code(origin.source)) + " policy, " + origin.rule;
  if (!origin.file.empty()) {
    text += " (" + origin.file;
    text += origin.line == 0 ? ")" : ":" + std::to_string(origin.line) + ")";
  }
  return text;
}

void Terms::MeetWith(const Terms& other) {
  const auto join = [](auto& mine, const auto& theirs) {
    mine.insert(theirs.begin(), theirs.end());
  };
  join(aggregator_locations, other.aggregator_locations);
  join(aggregator_control, other.aggregator_control);
  join(model_recipients, other.model_recipients);
  join(recipients, other.recipients);
  join(update_kinds, other.update_kinds);
  join(purposes, other.purposes);
  join(aggregator_view, other.aggregator_view);
  join(deny_locations, other.deny_locations);
  join(deny_control, other.deny_control);
  join(deny_recipients, other.deny_recipients);
  join(deny_update_kinds, other.deny_update_kinds);
  join(min_contributors, other.min_contributors);
  join(min_cohort, other.min_cohort);
  join(min_batch, other.min_batch);
  join(min_local_steps, other.min_local_steps);
  join(clip_l2, other.clip_l2);
  join(dp_mode, other.dp_mode);
  join(require_secagg, other.require_secagg);
  join(rounds, other.rounds);
  join(runs_per_day, other.runs_per_day);
  join(update_bytes, other.update_bytes);
  join(released_numbers_per_record, other.released_numbers_per_record);
  join(metrics, other.metrics);
  join(params_per_record, other.params_per_record);
  join(sandbox_network, other.sandbox_network);
  join(weights, other.weights);
  join(approvals, other.approvals);
  join(regimes, other.regimes);
  join(special_category, other.special_category);
  join(dpia_valid_until, other.dpia_valid_until);
  join(grounds, other.grounds);
  join(no_rule, other.no_rule);
}

std::optional<Terms> Effective::Find(const DatasetAlias& alias) const {
  const bool known =
      !known_datasets_.empty() &&
      std::all_of(known_datasets_.begin(), known_datasets_.end(),
                  [&alias](const auto& clause) { return clause.value.contains(alias); });
  if (!known) {
    return std::nullopt;
  }
  Terms terms = every_;
  if (const auto found = by_dataset_.find(alias); found != by_dataset_.end()) {
    terms.MeetWith(found->second);
  }
  return terms;
}

std::uint32_t Effective::MinContributors(const DatasetAlias& alias) const {
  const std::optional<Terms> terms = Find(alias);
  return terms ? static_cast<std::uint32_t>(Greatest(terms->min_contributors).value_or(0)) : 0;
}

Effective FromPolicy(const Policy& policy, const Facts& facts) {
  Effective effective;
  effective.facts_ = facts;
  effective.sources_.insert({policy.source, policy.identity.id, policy.identity.version,
                             policy.identity.not_before, policy.identity.expires, policy.file});
  AddSettings(policy, effective.every_);
  for (const Rule& rule : policy.rules) {
    AddRule(rule, OriginOf(policy, "rule " + rule.id, rule.line),
            rule.dataset ? effective.by_dataset_[*rule.dataset] : effective.every_);
  }
  if (policy.source == PolicySource::kSite && policy.site) {
    effective.site_jurisdictions_.insert(
        {policy.site->jurisdiction.text(), OriginOf(policy, "[site]", 0)});
    std::set<DatasetAlias> known;
    for (const PolicyDataset& dataset : policy.datasets) {
      known.insert(dataset.alias);
      AddDataset(policy, dataset, effective.every_, effective.by_dataset_[dataset.alias]);
    }
    effective.known_datasets_.insert({std::move(known), OriginOf(policy, "[[dataset]]", 0)});
  }
  return effective;
}

Effective Meet(const Effective& a, const Effective& b) {
  DOMICILE_CHECK(a.facts_.id == b.facts_.id && a.facts_.version == b.facts_.version);
  Effective met = a;
  met.sources_.insert(b.sources_.begin(), b.sources_.end());
  met.site_jurisdictions_.insert(b.site_jurisdictions_.begin(), b.site_jurisdictions_.end());
  met.known_datasets_.insert(b.known_datasets_.begin(), b.known_datasets_.end());
  met.every_.MeetWith(b.every_);
  for (const auto& [alias, terms] : b.by_dataset_) {
    met.by_dataset_[alias].MeetWith(terms);
  }
  return met;
}

Effective Meet(const Policy& federation, const Policy& aggregator, const Policy& site,
               const Facts& facts) {
  return Meet(Meet(FromPolicy(federation, facts), FromPolicy(aggregator, facts)),
              FromPolicy(site, facts));
}

}  // namespace domicile::policy
