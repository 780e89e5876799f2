#include "policy/exporting/schema.h"

#include <set>
#include <utility>
#include <vector>

#include "policy/exporting/internal/conditions.h"
#include "policy/language/facts.h"
#include "policy/language/jurisdiction.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy {
namespace {

// One key of a table.
struct Key {
  std::string name;
  Json schema;
  std::string says;
};

Json Ref(std::string_view name) {
  return JsonObject{{"$ref", "#/definitions/" + std::string(name)}};
}

Json WithText(Json schema, const std::string& says) {
  // A reference beside other keywords is ignored in draft 7, so the text stands outside of it.
  if (schema.Find("$ref") != nullptr) {
    return JsonObject{{"allOf", JsonArray{std::move(schema)}}, {"description", says}};
  }
  schema.Set("description", says);
  return schema;
}

Json Table(std::vector<Key> keys, const JsonArray& required = {}) {
  JsonObject properties;
  for (Key& key : keys) {
    properties.emplace(key.name, WithText(std::move(key.schema), key.says));
  }
  JsonObject table = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (!required.empty()) {
    table.emplace("required", required);
  }
  return table;
}

Json Texts() { return JsonObject{{"type", "string"}}; }
Json Truth() { return JsonObject{{"type", "boolean"}}; }
Json Pattern(std::string_view pattern) {
  return JsonObject{{"type", "string"}, {"pattern", std::string(pattern)}};
}
Json Count(std::int64_t low) { return JsonObject{{"type", "integer"}, {"minimum", low}}; }
Json Number() { return JsonObject{{"type", "number"}, {"minimum", 0}}; }
Json Positive() { return JsonObject{{"type", "number"}, {"exclusiveMinimum", 0}}; }
Json ListOf(Json items) {
  return JsonObject{{"type", "array"}, {"items", std::move(items)}, {"uniqueItems", true}};
}
Json SomeOf(Json items) {
  Json list = ListOf(std::move(items));
  list.Set("minItems", 1);
  return list;
}
Json TablesOf(Json items) { return JsonObject{{"type", "array"}, {"items", std::move(items)}}; }

template <typename Texts>
Json OneOf(const Texts& codes) {
  JsonArray values;
  for (const auto& code : codes) {
    values.emplace_back(std::string(code));
  }
  return JsonObject{{"enum", std::move(values)}};
}

template <typename E>
Json Codes() {
  std::vector<std::string_view> codes;
  for (const E value : AllOf<E>()) {
    codes.push_back(Code(value));
  }
  return OneOf(codes);
}

// ISO 3166-2 codes by their form; the list of subdivisions stays in the program.
Json Place() {
  std::string countries;
  for (const std::string_view code : CountryCodes()) {
    countries += (countries.empty() ? "" : "|") + std::string(code);
  }
  return JsonObject{
      {"anyOf", JsonArray{OneOf(CountryCodes()), Pattern("^(" + countries + ")-[A-Z0-9]{1,3}$")}}};
}

Json Definitions() {
  return JsonObject{
      {"place", Place()},
      {"area", JsonObject{{"anyOf", JsonArray{OneOf(BlocNames()), Ref("place")}}}},
      {"date", Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ].*)?$")},
      {"duration", Pattern("^[1-9][0-9]*[smhdy]$")},
      {"digest", Pattern("^[0-9a-f]{64}$")},
      {"rule_id", Pattern("^[A-Za-z0-9._-]{1,40}$")},
      {"alias", Pattern("^[a-z0-9][a-z0-9-]*$")},
      {"recipient", Pattern("^(sites|operator|operator/[a-z0-9-]+|[a-z0-9][a-z0-9-]*)$")},
      {"document", Table({{"id", Texts(), "what people call the document; private"},
                          {"sha256", Ref("digest"), "of the document's bytes; private"},
                          {"valid_until", Ref("date"), "from then on it counts as missing"}},
                         {"id", "sha256", "valid_until"})}};
}

Json PolicyTable() {
  return Table(
      {{"schema", JsonObject{{"enum", JsonArray{1}}}, "the version of this language: 1"},
       {"id", Pattern("^[a-z0-9/._-]{1,80}$"), "names this policy; never changes"},
       {"version", Count(1), "grows with every change"},
       {"not_before", Ref("date"), "holds from then on"},
       {"expires", Ref("date"), "denies from then on; at most 366 days after not_before"},
       {"issuer", Texts(), "who answers for it; private"},
       {"signers", ListOf(Texts()), "names of the keys that may sign it; private"},
       {"threshold", Count(1), "how many of them must sign what allows more"},
       {"legal_facts", Ref("digest"), "the only legal facts file it holds with; absent: any"},
       {"cooldown", Ref("duration"),
        "the least time between publication and effect of a version that allows more"}},
      {"schema", "id", "version", "not_before", "expires", "issuer", "signers", "threshold"});
}

Json SiteTable() {
  return Table({{"jurisdiction", Ref("place"), "where the data are"},
                {"control_jurisdictions", SomeOf(Ref("place")),
                 "of owner, parent company and key custodian"},
                {"location_evidence", Codes<LocationEvidence>(),
                 "how the place is known; default certificate"}},
               {"jurisdiction", "control_jurisdictions"});
}

Json DatasetTable() {
  return Table({{"alias", Ref("alias"), "the only name that leaves the site"},
                {"name", Texts(), "the real name; private"},
                {"categories", SomeOf(Codes<Category>()), "what the data are; `none` stands alone"},
                {"subject_jurisdictions", SomeOf(Ref("place")), "whose people"},
                {"subjects_count", Codes<SubjectsCount>(),
                 "how many people; absent counts as more than any threshold"},
                {"regimes", SomeOf(Codes<Regime>()), "the laws that hold for these data"},
                {"lawful_basis", OneOf(LawfulBases()), "Art. 6 GDPR or its equivalent"},
                {"special_category_basis", OneOf(SpecialCategoryBases()),
                 "Art. 9 GDPR or its equivalent; wanted exactly if a category is special"},
                {"purpose", SomeOf(Codes<Purpose>()), "what for"},
                {"refs",
                 Table({{"dpia", Ref("document"), "data protection impact assessment"},
                        {"tia", Ref("document"), "transfer impact assessment"},
                        {"permit", Ref("document"), "EHDS data permit"},
                        {"baa", Ref("document"), "HIPAA business associate agreement"}}),
                 "documents that must exist and be in date; nobody reads them here"}},
               {"alias", "name", "categories", "subject_jurisdictions", "regimes", "lawful_basis",
                "purpose"});
}

Json AllowTable() {
  return Table(
      {{"aggregator_locations", ListOf(Ref("area")), "where it may be; default: own country"},
       {"aggregator_control", ListOf(Ref("area")),
        "from where it may be controlled; default: own country"},
       {"transit", ListOf(Ref("area")), "relays; default: as aggregator_locations"},
       {"recipients", ListOf(Ref("recipient")), "who may get models; default: nobody"},
       {"update_kinds", ListOf(Codes<UpdateKind>()), "default: delta.masked alone"},
       {"purposes", ListOf(Codes<Purpose>()), "default: the dataset's purpose"},
       {"aggregator_view", Codes<View>(), "at most; default: aggregate_only"},
       {"models", ListOf(Ref("digest")), "plans by digest; default: what a valid grant names"},
       {"trainers", ListOf(Ref("digest")), "default: what a valid grant names"},
       {"contributors", ListOf(Texts()),
        "sites that count toward min_contributors; default: all of the roster"},
       {"derogations", Truth(), "whether Art. 49 mechanisms count; default: false"}});
}

Json DenyTable() {
  return Table({{"locations", ListOf(Ref("area")), "of any receiver; wins over every allow"},
                {"control", ListOf(Ref("area")), "of any receiver; wins over every allow"},
                {"recipients", ListOf(Ref("recipient")), "who never gets a model"},
                {"update_kinds", ListOf(Codes<UpdateKind>()), "what never leaves"},
                {"outputs", ListOf(Codes<Output>()), "forms of output; default: all"},
                {"purposes", ListOf(Codes<Purpose>()), "default: what EHDS Art. 54 prohibits"}});
}

Json RequireTable() {
  Json privacy = Table(
      {{"min_contributors", Count(3), "organisations behind a sum, at least; default 5"},
       {"min_cohort", Count(1), "records behind any number, at least; default 10"},
       {"min_batch", Count(1), "records of a step, at least; default 64"},
       {"min_local_steps", Count(1), "steps of a round, at least; default 5"},
       {"clip_l2", Positive(), "norm of an update, at most; default 1.0"},
       {"dp_mode", Codes<DpMode>(), "at least; default enforced for special categories"},
       {"dp_unit", Codes<DpUnit>(), "whose presence is hidden, at least; default person"},
       {"sampling", Codes<Sampling>(), "what an accountant may count on; default none_assumed"},
       {"require_secagg", Truth(), "secure aggregation; default true"},
       {"secagg_threshold", JsonObject{{"type", "number"}, {"minimum", 0}, {"maximum", 1}},
        "more than this share must join to open a sum; 0.5 to 0.99"}});
  return Table({{"privacy", std::move(privacy), "how private"},
                {"evidence", Codes<LocationEvidence>(),
                 "how a receiver's place must be known, at least; default certificate"}});
}

Json LimitTable() {
  return Table(
      {{"rounds", Count(0), "of a run; default 0"},
       {"runs_per_day", Count(0), "on the dataset in 24 hours; default 0"},
       {"update_bytes", Count(0), "of one update; default 0"},
       {"metrics", Count(0), "scalar numbers of one update; default 0"},
       {"released_numbers_per_record", Number(), "summed over all jobs, ever; default 0.33"},
       {"params_per_record", Number(), "size of the model; default 0.33"},
       {"epsilon_total", Number(), "within the budget window; default 8.0"},
       {"epsilon_per_run", Number(), "default 2.0"},
       {"delta", Number(), "default 1e-5"},
       {"budget_window",
        JsonObject{{"anyOf", JsonArray{Ref("duration"), OneOf(std::vector{"life"})}}},
        "after which epsilon is given back; default life"},
       {"export_subjects_per_year", Count(0), "people whose data cross a border in a year"}});
}

Json RuleTable() {
  Json transfer = Table({{"to", Ref("area"), "the receiver's place"},
                         {"mechanism", Codes<Mechanism>(), "the legal ground you state"},
                         {"ref", Texts(), "the document or decision; private"},
                         {"valid_until", Ref("date"), "wanted for all but adequacy"},
                         {"importer", Texts(), "the organisation that receives, as in the roster"}},
                        {"to", "mechanism", "ref"});
  return Table({{"id", Ref("rule_id"), "explanations name it"},
                {"dataset", Ref("alias"), "absent: every dataset"},
                {"allow", AllowTable(), "lists that every other source may only narrow"},
                {"deny", DenyTable(), "wins over every allow"},
                {"require", RequireTable(), "at least so much protection"},
                {"limit", LimitTable(), "at most so much"},
                {"transfer", TablesOf(std::move(transfer)), "legal grounds of borders"}},
               {"id"});
}

Json ApprovalsTable() {
  Json required = Table({{"role", Codes<ApprovalRole>(), "who"},
                         {"count", Count(1), "how many persons"},
                         {"distinct_org", Truth(), "each of another organisation"}},
                        {"role", "count"});
  return Table({{"required", TablesOf(std::move(required)),
                 "default: one dpo, one operator; [] says in so many words: nobody"},
                {"keys", ListOf(Texts()), "names of the keys that may approve; private"},
                {"max_age", Ref("duration"), "of an approval, at most; default 90d"}},
               {"required"});
}

std::vector<Key> Settings() {
  return {
      {"model", Table({{"recipients", ListOf(Ref("area")), "default: own country"}}),
       "where those who get models must be, and be controlled from"},
      {"approvals", ApprovalsTable(), "who must agree to each run"},
      {"sandbox",
       Table({{"network", Codes<SandboxNetwork>(), "at most; default none"},
              {"profile_min", Codes<SandboxProfile>(), "at least; default ns+seccomp"}}),
       "what the trainer is locked into"},
      {"update", Table({{"weights", Codes<WeightRule>(), "at most; default equal"}}),
       "how exactly a site's weight may be told"},
      {"retention",
       Table({{"audit_min", Ref("duration"), "logs are kept at least; default 6y"},
              {"update_max", Ref("duration"), "updates are kept at most; default 30d"},
              {"model_review", Ref("duration"), "models are reviewed; default 1y"}}),
       "how long"},
      {"erasure", Table({{"on_withdrawal", Codes<ErasureRule>(), "at least; default flag_models"}}),
       "what happens to models when a person withdraws"},
      {"audit",
       Table({{"witnesses_min", Count(0), "at least; default 1"},
              {"max_unwitnessed_age", Ref("duration"), "at most; default 1h"}}),
       "who else must have seen the log"},
      {"time", Table({{"max_skew", Ref("duration"), "at most; default 30s"}}),
       "how far two clocks may differ"}};
}

Json PolicyFile() {
  std::vector<Key> keys = Settings();
  keys.push_back({"policy", PolicyTable(), "identity and life"});
  keys.push_back({"site", SiteTable(), "site policies only"});
  keys.push_back({"dataset", TablesOf(DatasetTable()), "site policies only"});
  keys.push_back({"rule", TablesOf(RuleTable()), "all rules that match hold together"});
  Json file = Table(std::move(keys), {"policy"});
  file.Set("dependencies", JsonObject{{"dataset", JsonArray{"site"}}});
  return file;
}

// The keys that not every kind of fact has.
std::vector<std::string> KeysOf(FactKind kind) {
  switch (kind) {
    case FactKind::kBloc:
      return {"bloc", "members"};
    case FactKind::kTerritory:
      return {"regime", "from"};
    case FactKind::kFreeFlow:
    case FactKind::kCountryOfConcern:
    case FactKind::kNegativeList:
      return {"regime", "from", "to"};
    case FactKind::kAdequacy:
      return {"regime", "from", "to", "scope"};
    case FactKind::kThreshold:
      return {"regime", "categories", "at_least", "requires"};
    case FactKind::kNone:
      break;
  }
  return {};
}

// For each kind, the keys of the others are refused.
Json ByKind(const std::vector<FactKind>& kinds) {
  std::set<std::string> special;
  for (const FactKind kind : kinds) {
    const std::vector<std::string> keys = KeysOf(kind);
    special.insert(keys.begin(), keys.end());
  }
  JsonArray rules;
  for (const FactKind kind : kinds) {
    JsonObject refused;
    for (const std::string& key : special) {
      refused.emplace(key, false);
    }
    for (const std::string& key : KeysOf(kind)) {
      refused.erase(key);
    }
    const Json is_kind = JsonObject{{"const", std::string(Code(kind))}};
    rules.emplace_back(JsonObject{{"if", JsonObject{{"properties", JsonObject{{"kind", is_kind}}}}},
                                  {"then", JsonObject{{"properties", std::move(refused)}}}});
  }
  return rules;
}

Json FactsFile() {
  std::vector<FactKind> kinds;
  std::vector<std::string_view> codes;
  for (int i = 1; Code(static_cast<FactKind>(i)) != "unset"; ++i) {
    kinds.push_back(static_cast<FactKind>(i));
    codes.push_back(Code(kinds.back()));
  }
  Json fact = Table(
      {{"id", Ref("rule_id"), "explanations name it"},
       {"kind", OneOf(codes), "what it states"},
       {"bloc", OneOf(BlocNames()), "of a bloc"},
       {"members", ListOf(Ref("place")), "of a bloc"},
       {"regime", Codes<Regime>(), "the law; of every kind but bloc"},
       {"from", SomeOf(Ref("area")), "exporters"},
       {"to", SomeOf(Ref("area")), "receivers"},
       {"scope", Texts(), "adequacy for certified importers only"},
       {"categories", ListOf(Codes<Category>()), "of a threshold; absent: any"},
       {"at_least", Count(1), "of a threshold, in people"},
       {"requires", ListOf(Codes<Mechanism>()), "of a threshold: only these count from there on"},
       {"from_date", Ref("date"), "holds from then on"},
       {"until_date", Ref("date"), "the first instant it no longer holds"},
       {"source", Texts(), "where it can be read"},
       {"checked_by", Texts(), "who looked last"},
       {"checked_on", Ref("date"), "and when"}},
      {"id", "kind", "from_date", "source", "checked_by", "checked_on"});
  fact.Set("allOf", ByKind(kinds));
  Json head = Table({{"id", Pattern("^[a-z0-9/._-]{1,80}$"), "names this file"},
                     {"version", Count(1), "grows with every change"},
                     {"expires", Ref("date"), "from then on every fact denies"}},
                    {"id", "version", "expires"});
  return Table({{"facts", std::move(head), "identity and life"},
                {"fact", TablesOf(std::move(fact)), "dated, with a source"}},
               {"facts"});
}

}  // namespace

std::string PolicySchema() {
  Json definitions = Definitions();
  definitions.Set("policy_file", PolicyFile());
  definitions.Set("facts_file", FactsFile());
  return internal::PrintIndented(JsonObject{{"$schema", "http://json-schema.org/draft-07/schema#"},
                                            {"title", "Domicile policies and legal facts (TOML)"},
                                            {"type", "object"},
                                            {"if", JsonObject{{"required", JsonArray{"facts"}}}},
                                            {"then", Ref("facts_file")},
                                            {"else", Ref("policy_file")},
                                            {"definitions", std::move(definitions)}});
}

}  // namespace domicile::policy
