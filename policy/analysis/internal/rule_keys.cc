#include "policy/analysis/internal/rule_keys.h"

#include <limits>
#include <string>

namespace domicile::policy::analysis::internal {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 52U;
constexpr double kNoBound = 1e12;

template <typename E>
std::set<E> Every() {
  const auto all = AllOf<E>();
  return {all.begin(), all.end()};
}

// A key that is an optional member. What `loose` gives is the loosest value.
template <auto member, auto loose>
constexpr RuleKey Optional(std::string_view name) {
  return {name, [](const Rule& rule) { return (rule.*member).has_value(); },
          [](Rule& rule) { (rule.*member).reset(); }, [](Rule& rule) { rule.*member = loose(); }};
}

// A list of what is denied: empty is absent.
template <auto member>
constexpr RuleKey Deny(std::string_view name) {
  return {name, [](const Rule& rule) { return !(rule.*member).empty(); },
          [](Rule& rule) { (rule.*member).clear(); }, [](Rule& rule) { (rule.*member).clear(); }};
}

template <auto member>
constexpr RuleKey ListOf(std::string_view name) {  // of digests or sites: loosest is no list
  return {name, [](const Rule& rule) { return (rule.*member).has_value(); },
          [](Rule& rule) { (rule.*member).reset(); }, [](Rule& rule) { (rule.*member).reset(); }};
}

std::set<std::string> AnyRecipient() { return {"sites", "operator"}; }
template <auto value>
auto Value() {
  return value;
}
double NoBound() { return kNoBound; }
double NoNorm() { return 0; }
Duration Instant() { return std::chrono::seconds(1); }
Duration Forever() { return std::chrono::hours(24 * 366 * 100); }

constexpr RuleKey kRuleKeys[] = {
    Optional<&Rule::aggregator_locations, &EveryArea>("allow.aggregator_locations"),
    Optional<&Rule::aggregator_control, &EveryArea>("allow.aggregator_control"),
    Optional<&Rule::recipients, &AnyRecipient>("allow.recipients"),
    Optional<&Rule::update_kinds, &Every<UpdateKind>>("allow.update_kinds"),
    Optional<&Rule::purposes, &Every<Purpose>>("allow.purposes"),
    Optional<&Rule::aggregator_view, &Value<View::kPlaintextIndividual>>("allow.aggregator_view"),
    Optional<&Rule::transit, &EveryArea>("allow.transit"),
    ListOf<&Rule::models>("allow.models"),
    ListOf<&Rule::trainers>("allow.trainers"),
    ListOf<&Rule::contributors>("allow.contributors"),
    Optional<&Rule::derogations, &Value<true>>("allow.derogations"),
    Deny<&Rule::deny_locations>("deny.locations"),
    Deny<&Rule::deny_control>("deny.control"),
    Deny<&Rule::deny_recipients>("deny.recipients"),
    Deny<&Rule::deny_update_kinds>("deny.update_kinds"),
    {"deny.outputs", [](const Rule& rule) { return rule.deny_outputs.has_value(); },
     [](Rule& rule) { rule.deny_outputs.reset(); },
     [](Rule& rule) { rule.deny_outputs = std::set<Output>{}; }},
    {"deny.purposes", [](const Rule& rule) { return rule.deny_purposes.has_value(); },
     [](Rule& rule) { rule.deny_purposes.reset(); },
     [](Rule& rule) { rule.deny_purposes = std::set<Purpose>{}; }},
    Optional<&Rule::evidence, &Value<LocationEvidence::kDeclared>>("require.evidence"),
    Optional<&Rule::min_contributors, &Value<0U>>("require.privacy.min_contributors"),
    Optional<&Rule::min_cohort, &Value<0U>>("require.privacy.min_cohort"),
    Optional<&Rule::min_batch, &Value<0U>>("require.privacy.min_batch"),
    Optional<&Rule::min_local_steps, &Value<0U>>("require.privacy.min_local_steps"),
    Optional<&Rule::clip_l2, &NoBound>("require.privacy.clip_l2"),
    Optional<&Rule::dp_mode, &Value<DpMode::kNone>>("require.privacy.dp_mode"),
    Optional<&Rule::require_secagg, &Value<false>>("require.privacy.require_secagg"),
    Optional<&Rule::secagg_threshold, &NoNorm>("require.privacy.secagg_threshold"),
    Optional<&Rule::dp_unit, &Value<DpUnit::kRecord>>("require.privacy.dp_unit"),
    Optional<&Rule::sampling, &Value<Sampling::kNoneAssumed>>("require.privacy.sampling"),
    Optional<&Rule::rounds, &Value<kNoLimit>>("limit.rounds"),
    Optional<&Rule::runs_per_day, &Value<kNoLimit>>("limit.runs_per_day"),
    Optional<&Rule::update_bytes, &Value<kNoLimit>>("limit.update_bytes"),
    Optional<&Rule::released_numbers_per_record, &NoBound>("limit.released_numbers_per_record"),
    Optional<&Rule::metrics, &Value<kNoLimit>>("limit.metrics"),
    Optional<&Rule::params_per_record, &NoBound>("limit.params_per_record"),
    Optional<&Rule::epsilon_total, &NoBound>("limit.epsilon_total"),
    Optional<&Rule::epsilon_per_run, &NoBound>("limit.epsilon_per_run"),
    Optional<&Rule::delta, &NoBound>("limit.delta"),
    Optional<&Rule::budget_window, &Instant>("limit.budget_window"),
    Optional<&Rule::export_subjects_per_year, &Value<kNoLimit>>("limit.export_subjects_per_year"),
    // An entry makes a ground; without its end and its importer it makes more of one.
    {"rule.transfer", [](const Rule& rule) { return !rule.transfers.empty(); },
     [](Rule& rule) { rule.transfers.clear(); },
     [](Rule& rule) {
       for (TransferGround& ground : rule.transfers) {
         ground.importer.clear();
         ground.valid_until.reset();
       }
     }}};

template <auto member, auto line_of, auto loose>
constexpr SectionKey Section(std::string_view name) {
  return {name, [](const Policy& policy) { return (policy.*member).has_value(); },
          [](Policy& policy) { (policy.*member).reset(); },
          [](Policy& policy) { policy.*member = loose(); },
          [](const Policy& policy) { return policy.*line_of; }};
}

template <auto section, auto member, auto loose>
constexpr SectionKey Inner(std::string_view name) {
  return {name, [](const Policy& policy) { return (policy.*section.*member).has_value(); },
          [](Policy& policy) { (policy.*section.*member).reset(); },
          [](Policy& policy) { policy.*section.*member = loose(); },
          [](const Policy& policy) { return (policy.*section).line; }};
}

std::uint32_t ApprovalLine(const Policy& policy) {
  return policy.approvals ? policy.approvals->line : 0;
}

constexpr SectionKey kSectionKeys[] = {
    Section<&Policy::model_recipients, &Policy::model_line, &EveryArea>("model.recipients"),
    {"approvals.required", [](const Policy& policy) { return policy.approvals.has_value(); },
     [](Policy& policy) { policy.approvals.reset(); },
     [](Policy& policy) { policy.approvals->required.clear(); }, &ApprovalLine},
    {"approvals.max_age",
     [](const Policy& policy) { return policy.approvals && policy.approvals->max_age; },
     [](Policy& policy) { policy.approvals->max_age.reset(); },
     [](Policy& policy) { policy.approvals->max_age = Forever(); }, &ApprovalLine},
    Section<&Policy::sandbox_network, &Policy::sandbox_line, &Value<SandboxNetwork::kSiteCluster>>(
        "sandbox.network"),
    Section<&Policy::sandbox_profile, &Policy::sandbox_line, &Value<SandboxProfile::kNamespaces>>(
        "sandbox.profile_min"),
    Section<&Policy::weights, &Policy::weights_line, &Value<WeightRule::kExact>>("update.weights"),
    Inner<&Policy::retention, &RetentionSection::audit_min, &Instant>("retention.audit_min"),
    Inner<&Policy::retention, &RetentionSection::update_max, &Forever>("retention.update_max"),
    Inner<&Policy::retention, &RetentionSection::model_review, &Forever>("retention.model_review"),
    Section<&Policy::on_withdrawal, &Policy::erasure_line, &Value<ErasureRule::kStopUse>>(
        "erasure.on_withdrawal"),
    Inner<&Policy::audit, &AuditSection::witnesses_min, &Value<0U>>("audit.witnesses_min"),
    Inner<&Policy::audit, &AuditSection::max_unwitnessed_age, &Forever>(
        "audit.max_unwitnessed_age"),
    Section<&Policy::max_skew, &Policy::time_line, &Forever>("time.max_skew")};

}  // namespace

std::set<Area> EveryArea() {
  std::set<Area> areas;
  for (const std::string_view code : CountryCodes()) {
    areas.insert(*Area::Parse(code));
  }
  return areas;
}

std::span<const RuleKey> RuleKeys() { return kRuleKeys; }
std::span<const SectionKey> SectionKeys() { return kSectionKeys; }

}  // namespace domicile::policy::analysis::internal
