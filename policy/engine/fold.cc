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
      if (AreDisjoint(a->value, b->value, facts)) {
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

void AddAllowAndDeny(const Terms& terms, JsonObject& json) {
  json.emplace("aggregator_locations", AreaSetsJson(terms.aggregator_locations));
  json.emplace("aggregator_control", AreaSetsJson(terms.aggregator_control));
  json.emplace("model_recipients", AreaSetsJson(terms.model_recipients));
  if (const auto names = Intersection(terms.recipients)) {
    json.emplace("recipients", NamesJson(*names));
  }
  if (const auto kinds = Intersection(terms.update_kinds)) {
    json.emplace("update_kinds", CodesJson(*kinds));
  }
  if (const auto purposes = Intersection(terms.purposes)) {
    json.emplace("purposes", CodesJson(*purposes));
  }
  SetCode(json, "aggregator_view", Least(terms.aggregator_view));
  json.emplace("deny_locations", TextsJson(Union(terms.deny_locations)));
  json.emplace("deny_control", TextsJson(Union(terms.deny_control)));
  json.emplace("deny_recipients", NamesJson(Union(terms.deny_recipients)));
  json.emplace("deny_update_kinds", CodesJson(Union(terms.deny_update_kinds)));
}

void AddNumbers(const Terms& terms, JsonObject& json) {
  SetNumber(json, "min_contributors", Greatest(terms.min_contributors));
  SetNumber(json, "min_cohort", Greatest(terms.min_cohort));
  SetNumber(json, "min_batch", Greatest(terms.min_batch));
  SetNumber(json, "min_local_steps", Greatest(terms.min_local_steps));
  SetDecimal(json, "clip_l2", Least(terms.clip_l2));
  SetCode(json, "dp_mode", Greatest(terms.dp_mode));
  SetNumber(json, "require_secagg", Greatest(terms.require_secagg));
  SetNumber(json, "rounds", Least(terms.rounds));
  SetNumber(json, "runs_per_day", Least(terms.runs_per_day));
  SetNumber(json, "update_bytes", Least(terms.update_bytes));
  SetDecimal(json, "released_numbers_per_record", Least(terms.released_numbers_per_record));
  SetNumber(json, "metrics", Least(terms.metrics));
  SetDecimal(json, "params_per_record", Least(terms.params_per_record));
  SetCode(json, "sandbox_network", Least(terms.sandbox_network));
  SetCode(json, "weights", Least(terms.weights));
  std::map<ApprovalRole, std::uint32_t> approvals;
  for (const auto& clause : terms.approvals) {
    for (const auto& [role, count] : clause.value) {
      approvals[role] = std::max(approvals[role], count);
    }
  }
  JsonObject wanted;
  for (const auto& [role, count] : approvals) {
    wanted.emplace(Code(role), Json(count));
  }
  json.emplace("approvals", std::move(wanted));
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

void AddGrounds(const Terms& terms, JsonObject& json) {
  json.emplace("regimes", CodesJson(Union(terms.regimes)));
  SetNumber(json, "special_category", Greatest(terms.special_category));
  if (const auto earliest = Least(terms.dpia_valid_until); earliest && *earliest) {
    json.emplace("dpia_valid_until", PrintTime(**earliest));
  }
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
  AddNumbers(terms, json);
  AddGrounds(terms, json);
  return json;
}

std::set<DatasetAlias> DatasetsOf(const Effective& effective) {
  return Intersection(effective.KnownDatasets()).value_or(std::set<DatasetAlias>{});
}

}  // namespace

std::vector<std::string> FindConflicts(const Terms& terms, const Facts& facts) {
  std::vector<std::string> conflicts;
  FindDisjoint("allow.aggregator_locations", terms.aggregator_locations, facts, conflicts);
  FindDisjoint("allow.aggregator_control", terms.aggregator_control, facts, conflicts);
  FindDisjoint("model.recipients", terms.model_recipients, facts, conflicts);
  FindDisjoint("allow.update_kinds", terms.update_kinds, facts, conflicts);
  FindDisjoint("purpose", terms.purposes, facts, conflicts);
  return conflicts;
}

std::vector<std::string> Effective::Conflicts(const DatasetAlias& alias) const {
  std::vector<std::string> conflicts;
  for (auto a = site_jurisdictions_.begin(); a != site_jurisdictions_.end(); ++a) {
    for (auto b = std::next(a); b != site_jurisdictions_.end(); ++b) {
      if (a->value != b->value) {
        conflicts.push_back("site.jurisdiction: `" + a->value + "` in " + Print(a->origin) +
                            " and `" + b->value + "` in " + Print(b->origin));
      }
    }
  }
  for (const Source& begins : sources_) {
    for (const Source& ends : sources_) {
      if (begins.not_before >= ends.expires) {
        conflicts.push_back("policy `" + begins.id + "` (" + begins.file + ") begins after `" +
                            ends.id + "` (" + ends.file + ") has expired");
      }
    }
  }
  if (const std::optional<Terms> terms = Find(alias)) {
    const std::vector<std::string> more = FindConflicts(*terms, facts_);
    conflicts.insert(conflicts.end(), more.begin(), more.end());
  }
  return conflicts;
}

Status Effective::CheckSatisfiable() const {
  for (const DatasetAlias& alias : DatasetsOf(*this)) {
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
  for (const DatasetAlias& alias : DatasetsOf(*this)) {
    datasets.emplace(alias.text(), TermsJson(*Find(alias)));
  }
  return PrintJson(JsonObject{{"v", 1},
                              {"kind", "domicile.effective-policy"},
                              {"sources", std::move(source_list)},
                              {"site_jurisdictions", NamesJson(places)},
                              {"datasets", std::move(datasets)},
                              {"facts", facts_.ToJson()}});
}

}  // namespace domicile::policy
