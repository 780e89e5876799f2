#include "policy/engine/fold.h"

#include <utility>

#include "base/text.h"
#include "policy/language/statement_rule.h"

namespace domicile::policy {
namespace {

// Every smallest place a set of areas names, whatever the date; empty if a bloc has no fact.
std::optional<std::set<Jurisdiction>> Atoms(const std::set<Area>& areas, const Facts& facts) {
  std::set<Jurisdiction> atoms;
  for (const Area& area : areas) {
    if (!area.IsBloc()) {
      atoms.insert(area.Place());
      continue;
    }
    bool known = false;
    for (const Fact& fact : facts.facts) {
      if (fact.kind == FactKind::kBloc && fact.bloc == area.text()) {
        known = true;
        atoms.insert(fact.members.begin(), fact.members.end());
      }
    }
    if (!known) {
      return std::nullopt;
    }
  }
  return atoms;
}

// Whether no place is in both. A date only makes blocs smaller, so "disjoint" is certain and the
// other answer is not; what cannot be told is left to Decide.
bool AreDisjoint(const std::set<Area>& a, const std::set<Area>& b, const Facts& facts) {
  const auto places_a = Atoms(a, facts);
  const auto places_b = Atoms(b, facts);
  if (!places_a || !places_b || places_a->empty() || places_b->empty()) {
    return false;
  }
  return std::none_of(places_a->begin(), places_a->end(), [&](const Jurisdiction& place) {
    return std::any_of(places_b->begin(), places_b->end(), [&place](const Jurisdiction& other) {
      return place.Covers(other) || other.Covers(place);
    });
  });
}

template <typename E>
bool AreDisjoint(const std::set<E>& a, const std::set<E>& b, const Facts& /*facts*/) {
  return !a.empty() && !b.empty() &&
         std::none_of(a.begin(), a.end(), [&b](const E& value) { return b.contains(value); });
}

template <typename T>
void FindDisjoint(std::string_view key, const Clauses<std::set<T>>& clauses, const Facts& facts,
                  std::vector<std::string>& conflicts) {
  for (auto a = clauses.begin(); a != clauses.end(); ++a) {
    for (auto b = std::next(a); b != clauses.end(); ++b) {
      // A grant for something else is no contradiction of the policies.
      const bool is_grant =
          a->origin.source == PolicySource::kGrant || b->origin.source == PolicySource::kGrant;
      if (!is_grant && AreDisjoint(a->value, b->value, facts)) {
        conflicts.push_back(std::string(key) + ": nothing is in both " + Print(a->origin) +
                            " and " + Print(b->origin));
      }
    }
  }
}

Json AreaSetsJson(const Clauses<std::set<Area>>& clauses) {
  std::set<std::set<Area>> sets;
  for (const auto& clause : clauses) {
    sets.insert(clause.value);
  }
  JsonArray json;
  for (const std::set<Area>& areas : sets) {
    json.push_back(TextsJson(areas));
  }
  return json;
}

Json NamesJson(const std::set<std::string>& names) { return JsonArray(names.begin(), names.end()); }

template <typename T>
void SetNumber(JsonObject& json, std::string_view key, const std::optional<T>& value) {
  if (value) {
    json.emplace(key, Json(*value));
  }
}

void SetDecimal(JsonObject& json, std::string_view key, const std::optional<double>& value) {
  if (value) {
    json.emplace(key, PrintDouble(*value));
  }
}

template <typename E>
void SetCode(JsonObject& json, std::string_view key, const std::optional<E>& value) {
  if (value) {
    json.emplace(key, std::string(Code(*value)));
  }
}

template <typename E>
void SetCodes(JsonObject& json, std::string_view key, const Clauses<std::set<E>>& clauses) {
  if (const auto common = Intersection(clauses)) {
    json.emplace(key, CodesJson(*common));
  }
}

void SetNames(JsonObject& json, std::string_view key,
              const Clauses<std::set<std::string>>& clauses) {
  if (const auto common = Intersection(clauses)) {
    json.emplace(key, NamesJson(*common));
  }
}

void SetDuration(JsonObject& json, std::string_view key, const std::optional<Duration>& value) {
  if (value) {
    json.emplace(key, *value == kLifeOfDataset ? Json("life") : Json(value->count()));
  }
}

void AddAllowAndDeny(const Terms& terms, JsonObject& json) {
  json.emplace("aggregator_locations", AreaSetsJson(terms.aggregator_locations));
  json.emplace("aggregator_control", AreaSetsJson(terms.aggregator_control));
  json.emplace("model_recipients", AreaSetsJson(terms.model_recipients));
  json.emplace("transit", AreaSetsJson(terms.transit));
  SetNames(json, "recipients", terms.recipients);
  SetNames(json, "contributors", terms.contributors);
  SetNames(json, "models", terms.models);
  SetNames(json, "trainers", terms.trainers);
  SetCodes(json, "update_kinds", terms.update_kinds);
  SetCodes(json, "purposes", terms.purposes);
  SetCode(json, "aggregator_view", Least(terms.aggregator_view));
  SetNumber(json, "derogations", Least(terms.derogations));
  json.emplace("deny_locations", TextsJson(Union(terms.deny_locations)));
  json.emplace("deny_control", TextsJson(Union(terms.deny_control)));
  json.emplace("deny_recipients", NamesJson(Union(terms.deny_recipients)));
  json.emplace("deny_update_kinds", CodesJson(Union(terms.deny_update_kinds)));
  json.emplace("deny_outputs", CodesJson(Union(terms.deny_outputs)));
  json.emplace("deny_purposes", CodesJson(Union(terms.deny_purposes)));
  SetCode(json, "evidence", Greatest(terms.evidence));
  SetCode(json, "site_evidence", Greatest(terms.site_evidence));
}

void AddPrivacy(const Terms& terms, JsonObject& json) {
  SetNumber(json, "min_contributors", Greatest(terms.min_contributors));
  SetNumber(json, "min_cohort", Greatest(terms.min_cohort));
  SetNumber(json, "min_batch", Greatest(terms.min_batch));
  SetNumber(json, "min_local_steps", Greatest(terms.min_local_steps));
  SetDecimal(json, "clip_l2", Least(terms.clip_l2));
  SetCode(json, "dp_mode", Greatest(terms.dp_mode));
  SetNumber(json, "require_secagg", Greatest(terms.require_secagg));
  SetDecimal(json, "secagg_threshold", Greatest(terms.secagg_threshold));
  SetCode(json, "dp_unit", Greatest(terms.dp_unit));
  SetCode(json, "sampling", Greatest(terms.sampling));
}

void AddLimits(const Terms& terms, JsonObject& json) {
  SetNumber(json, "rounds", Least(terms.rounds));
  SetNumber(json, "runs_per_day", Least(terms.runs_per_day));
  SetNumber(json, "update_bytes", Least(terms.update_bytes));
  SetDecimal(json, "released_numbers_per_record", Least(terms.released_numbers_per_record));
  SetNumber(json, "metrics", Least(terms.metrics));
  SetDecimal(json, "params_per_record", Least(terms.params_per_record));
  SetDecimal(json, "epsilon_total", Least(terms.epsilon_total));
  SetDecimal(json, "epsilon_per_run", Least(terms.epsilon_per_run));
  SetDecimal(json, "delta", Least(terms.delta));
  SetDuration(json, "budget_window", Greatest(terms.budget_window));
  SetNumber(json, "export_subjects_per_year", Least(terms.export_subjects_per_year));
}

void AddSections(const Terms& terms, JsonObject& json) {
  SetCode(json, "sandbox_network", Least(terms.sandbox_network));
  SetCode(json, "sandbox_profile", Greatest(terms.sandbox_profile));
  SetCode(json, "weights", Least(terms.weights));
  JsonObject wanted;
  for (const auto& [role, approval] : FoldApprovals(terms)) {
    wanted.emplace(Code(role),
                   JsonObject{{"count", approval.count}, {"distinct_org", approval.distinct_org}});
  }
  json.emplace("approvals", std::move(wanted));
  SetDuration(json, "approval_max_age", Least(terms.approval_max_age));
  SetDuration(json, "audit_min", Greatest(terms.audit_min));
  SetDuration(json, "update_max", Least(terms.update_max));
  SetDuration(json, "model_review", Least(terms.model_review));
  SetCode(json, "on_withdrawal", Greatest(terms.on_withdrawal));
  SetNumber(json, "witnesses_min", Greatest(terms.witnesses_min));
  SetDuration(json, "max_unwitnessed_age", Least(terms.max_unwitnessed_age));
  SetDuration(json, "max_skew", Least(terms.max_skew));
}

// Without references and lines, which a statement does not have.
std::string GroundText(const TransferGround& ground) {
  JsonObject json = {{"to", ground.to.text()}, {"mechanism", std::string(Code(ground.mechanism))}};
  if (ground.valid_until) {
    json.emplace("valid_until", PrintTime(*ground.valid_until));
  }
  if (!ground.importer.empty()) {
    json.emplace("importer", ground.importer);
  }
  return PrintJson(std::move(json));
}

std::string TraitsText(const DatasetTraits& traits) {
  JsonObject json = {{"regimes", CodesJson(traits.regimes)},
                     {"categories", CodesJson(traits.categories)}};
  if (traits.subjects_count != SubjectsCount::kUnset) {
    json.emplace("subjects_count", std::string(Code(traits.subjects_count)));
  }
  if (traits.is_deidentified) {
    json.emplace("deidentified", Json(true));
  }
  const auto set_until = [&json](std::string_view key, const std::optional<WallTime>& until) {
    if (until) {
      json.emplace(key, PrintTime(*until));
    }
  };
  set_until("dpia_valid_until", traits.dpia);
  set_until("tia_valid_until", traits.tia);
  set_until("permit_valid_until", traits.permit);
  set_until("baa_valid_until", traits.baa);
  return PrintJson(std::move(json));
}

void AddGrounds(const Terms& terms, JsonObject& json) {
  std::set<std::string> traits;
  for (const auto& clause : terms.traits) {
    traits.insert(TraitsText(clause.value));
  }
  json.emplace("traits", NamesJson(traits));
  std::set<std::set<std::string>> sets;
  for (const auto& clause : terms.grounds) {
    std::set<std::string> texts;
    for (const TransferGround& ground : clause.value) {
      texts.insert(GroundText(ground));
    }
    sets.insert(std::move(texts));
  }
  JsonArray grounds;
  for (const std::set<std::string>& texts : sets) {
    grounds.push_back(NamesJson(texts));
  }
  json.emplace("grounds", std::move(grounds));
  json.emplace("has_rule", Json(terms.no_rule.empty()));
}

Json TermsJson(const Terms& terms) {
  JsonObject json;
  AddAllowAndDeny(terms, json);
  AddPrivacy(terms, json);
  AddLimits(terms, json);
  AddSections(terms, json);
  AddGrounds(terms, json);
  return json;
}

}  // namespace

std::map<ApprovalRole, WantedApproval> FoldApprovals(const Terms& terms) {
  std::map<ApprovalRole, WantedApproval> folded;
  for (const auto& clause : terms.approvals) {
    for (const auto& [role, wanted] : clause.value) {
      WantedApproval& all = folded[role];
      all.count = std::max(all.count, wanted.count);
      all.distinct_org = all.distinct_org || wanted.distinct_org;
    }
  }
  return folded;
}

std::vector<std::string> FindConflicts(const Effective& effective, const Terms& terms) {
  std::vector<std::string> conflicts;
  const Clauses<std::string>& places = effective.SiteJurisdictions();
  for (auto a = places.begin(); a != places.end(); ++a) {
    for (auto b = std::next(a); b != places.end(); ++b) {
      if (a->value != b->value) {
        conflicts.push_back("site.jurisdiction: `" + a->value + "` in " + Print(a->origin) +
                            " and `" + b->value + "` in " + Print(b->origin));
      }
    }
  }
  for (const Effective::Source& begins : effective.Sources()) {
    for (const Effective::Source& ends : effective.Sources()) {
      if (begins.not_before >= ends.expires) {
        conflicts.push_back("policy `" + begins.id + "` (" + begins.file + ") begins after `" +
                            ends.id + "` (" + ends.file + ") has expired");
      }
    }
  }
  const Facts& facts = effective.LegalFacts();
  FindDisjoint("allow.aggregator_locations", terms.aggregator_locations, facts, conflicts);
  FindDisjoint("allow.aggregator_control", terms.aggregator_control, facts, conflicts);
  FindDisjoint("model.recipients", terms.model_recipients, facts, conflicts);
  FindDisjoint("allow.update_kinds", terms.update_kinds, facts, conflicts);
  FindDisjoint("allow.models", terms.models, facts, conflicts);
  FindDisjoint("allow.trainers", terms.trainers, facts, conflicts);
  FindDisjoint("purpose", terms.purposes, facts, conflicts);
  return conflicts;
}

Status Effective::CheckSatisfiable() const {
  for (const DatasetAlias& alias : Datasets()) {
    const std::vector<std::string> conflicts = Conflicts(alias);
    if (!conflicts.empty()) {
      return Error(StatusCode::kInvalidArgument,
                   "unsatisfiable for dataset `" + alias.text() + "`: " + conflicts.front());
    }
  }
  return OkStatus();
}

std::string Effective::Text() const {
  std::map<std::string, Json> sources;  // by their own text: file names differ between the ends
  for (const Source& source : sources_) {
    Json json = JsonObject{{"source", std::string(Code(source.source))},
                           {"id", source.id},
                           {"version", source.version},
                           {"not_before", PrintTime(source.not_before)},
                           {"expires", PrintTime(source.expires)}};
    if (!source.legal_facts.empty()) {
      json.Set("legal_facts", source.legal_facts);
    }
    if (source.cooldown) {
      json.Set("cooldown_seconds", Json(source.cooldown->count()));
    }
    std::string text = PrintJson(json);
    sources.emplace(std::move(text), std::move(json));
  }
  JsonArray source_list;
  for (auto& [text, json] : sources) {
    source_list.push_back(json);
  }
  std::set<std::string> places;
  for (const auto& clause : site_jurisdictions_) {
    places.insert(clause.value);
  }
  JsonObject datasets;
  for (const DatasetAlias& alias : Datasets()) {
    datasets.emplace(alias.text(), TermsJson(*Find(alias)));
  }
  return PrintJson(JsonObject{{"v", 1},
                              {"kind", "domicile.effective-policy"},
                              {"sources", std::move(source_list)},
                              {"site_jurisdictions", NamesJson(places)},
                              {"datasets", std::move(datasets)},
                              {"facts", facts_->ToJson()}});
}

}  // namespace domicile::policy
