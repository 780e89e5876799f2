// ODRL 2.2: permissions, prohibitions and duties, as dataspace connectors exchange them.
#include <utility>

#include "policy/exporting/export.h"
#include "policy/exporting/internal/json_ld.h"

namespace domicile::policy {
namespace {

using internal::About;
using internal::Condition;
using internal::Relation;
using internal::Step;
using internal::ValueKind;

// The part of the recommendation's context that is used here, so that nothing is fetched.
JsonObject Context() {
  const auto of_type = [](std::string_view term, std::string_view type) -> Json {
    return JsonObject{{"@id", "odrl:" + std::string(term)}, {"@type", std::string(type)}};
  };
  const auto set_of = [](std::string_view term) -> Json {
    return JsonObject{{"@id", "odrl:" + std::string(term)}, {"@container", "@set"}};
  };
  JsonObject context = internal::Prefixes();
  context.emplace("@vocab", "http://www.w3.org/ns/odrl/2/");
  context.emplace("uid", "@id");
  for (const std::string_view term : {"action", "conflict", "leftOperand", "operator"}) {
    context.emplace(term, of_type(term, "@vocab"));
  }
  for (const std::string_view term : {"profile", "target"}) {
    context.emplace(term, of_type(term, "@id"));
  }
  for (const std::string_view term : {"constraint", "duty", "permission", "prohibition"}) {
    context.emplace(term, set_of(term));
  }
  context.emplace("or", JsonObject{{"@id", "odrl:or"}, {"@container", "@list"}});
  return context;
}

std::string LeftOperand(const Condition& condition) {
  switch (condition.about) {
    case About::kPlace:
      return "spatial";
    case About::kWho:
      return "recipient";
    case About::kControl:
    case About::kContent:
      break;
  }
  if (condition.key == "purposes" || condition.key == "deny_purposes") {
    return "purpose";
  }
  return "domicile:" + (condition.about == About::kControl ? "control" : condition.key);
}

Json Constraint(std::string left, std::string_view relation, Json right) {
  return JsonObject{{"leftOperand", std::move(left)},
                    {"operator", std::string(relation)},
                    {"rightOperand", std::move(right)}};
}

JsonArray RightOperands(const Condition& condition) {
  if (LeftOperand(condition) != "purpose") {
    return internal::ValuesOf(condition);
  }
  JsonArray purposes;
  for (const std::string& code : condition.values) {
    purposes.push_back(
        internal::Iri(internal::PurposeTerm(FromCode<Purpose>(code).value_or(Purpose::kNone))));
  }
  return purposes;
}

// An area is a whole of which a place is part; of a list, one must fit.
Json AreaConstraint(const Condition& condition) {
  JsonArray parts;
  for (Json& area : RightOperands(condition)) {
    parts.push_back(Constraint(LeftOperand(condition), "isPartOf", std::move(area)));
  }
  return parts.size() == 1 ? parts.front() : Json(JsonObject{{"or", std::move(parts)}});
}

Json PlainConstraint(const Condition& condition) {
  if (condition.kind == ValueKind::kArea) {
    return AreaConstraint(condition);
  }
  JsonArray right = RightOperands(condition);
  const bool is_list =
      condition.relation == Relation::kAnyOf || condition.relation == Relation::kNoneOf;
  if (is_list) {
    // Of several values of the request, all must be in a list that allows; one in a list that
    // denies is enough.
    const bool is_all = condition.is_many && condition.relation == Relation::kAnyOf;
    return Constraint(LeftOperand(condition), is_all ? "isPartOf" : "isAnyOf", std::move(right));
  }
  const std::string_view relation = condition.relation == Relation::kAtMost    ? "lteq"
                                    : condition.relation == Relation::kAtLeast ? "gteq"
                                    : condition.relation == Relation::kAbove   ? "gt"
                                                                               : "eq";
  return Constraint(LeftOperand(condition), relation, std::move(right.front()));
}

Json ConstraintOf(const Condition& condition) {
  Json constraint = PlainConstraint(condition);
  if (!condition.needs_dp) {
    return constraint;
  }
  Json without = Constraint("domicile:dp_mode", "eq", std::string(Code(DpMode::kNone)));
  return JsonObject{{"or", JsonArray{std::move(without), std::move(constraint)}}};
}

JsonArray Approvals(const JsonObject& folded) {
  JsonArray duties;
  const auto approvals = folded.find("approvals");
  if (approvals == folded.end() || approvals->second.TryObject() == nullptr) {
    return duties;
  }
  for (const auto& [role, wanted] : *approvals->second.TryObject()) {
    const Json* const count = wanted.Find("count");
    const std::int64_t* const number = (count != nullptr ? *count : wanted).TryInt();
    duties.emplace_back(JsonObject{
        {"action", "obtainConsent"},
        {"constraint",
         JsonArray{Constraint("domicile:approver_role", "eq", role),
                   Constraint("count", "gteq",
                              internal::Typed(std::to_string(number != nullptr ? *number : 1),
                                              "xsd:integer"))}}});
  }
  return duties;
}

struct Rules {
  JsonArray permissions;
  JsonArray prohibitions;
};

std::string TargetOf(const Policy& site, const PolicyDataset& dataset, Step step) {
  return internal::DatasetIri(site, dataset.alias.text()) + (step == Step::kSend ? "" : "-models");
}

void AddStep(const ExportSource& source, const PolicyDataset& dataset,
             const std::vector<Condition>& conditions, const JsonObject& folded, Step step,
             Rules& rules) {
  const std::string target = TargetOf(source.site, dataset, step);
  const PolicyIdentity& identity = source.site.identity;
  JsonArray constraints = {Constraint("dateTime", "gteq", internal::Moment(identity.not_before)),
                           Constraint("dateTime", "lt", internal::Moment(identity.expires))};
  bool is_closed = false;
  for (const Condition& condition : conditions) {
    if (!Applies(condition.step, step)) {
      continue;
    }
    if (condition.relation == Relation::kNoneOf) {
      rules.prohibitions.emplace_back(
          JsonObject{{"target", target},
                     {"action", "distribute"},
                     {"constraint", JsonArray{ConstraintOf(condition)}}});
    } else if (condition.values.empty()) {
      is_closed = true;
    } else {
      constraints.push_back(ConstraintOf(condition));
    }
  }
  if (is_closed) {
    // A list that allows nothing: ODRL has no empty right operand, so it is said as a prohibition.
    rules.prohibitions.emplace_back(JsonObject{{"target", target}, {"action", "distribute"}});
    return;
  }
  JsonObject permission = {
      {"target", target}, {"action", "distribute"}, {"constraint", std::move(constraints)}};
  if (JsonArray duties = Approvals(folded); step == Step::kSend && !duties.empty()) {
    permission.emplace("duty", std::move(duties));
  }
  rules.permissions.emplace_back(std::move(permission));
}

}  // namespace

std::vector<std::string_view> OdrlCannotSay() {
  return {"how a policy is evaluated: ODRL 2.2 leaves it open, so what is unknown may not deny",
          "that an approval that is missing means to wait (hold); it is a duty here",
          "the legal ground of a border, the documents it needs, and the legal facts behind both",
          "that a place in a bloc on one day may be outside of it on another",
          "sums over rounds and jobs, such as released numbers per record and epsilon",
          "who signed the policy, and how it may be loosened",
          "operands beyond the recommendation (domicile:...), which need this profile"};
}

StatusOr<std::string> ExportOdrl(const ExportSource& source) {
  ASSIGN_OR_RETURN(const JsonObject datasets, internal::FoldedDatasets(source.effective));
  Rules rules;
  for (const PolicyDataset& dataset : source.site.datasets) {
    const auto folded = datasets.find(dataset.alias.text());
    if (folded == datasets.end()) {
      continue;  // the policies together do not know it
    }
    const JsonObject& keys = *folded->second.TryObject();
    ASSIGN_OR_RETURN(const std::vector<Condition> conditions, internal::ConditionsOf(keys));
    AddStep(source, dataset, conditions, keys, Step::kSend, rules);
    AddStep(source, dataset, conditions, keys, Step::kRelease, rules);
  }
  JsonArray cannot;
  for (const std::string_view sentence : OdrlCannotSay()) {
    cannot.emplace_back(std::string(sentence));
  }
  JsonObject set = {{"@context", Context()},
                    {"@type", "Set"},
                    {"uid", internal::PolicyIri(source.site)},
                    {"profile", "urn:domicile:odrl-profile"},
                    {"conflict", "prohibit"},
                    {"dct:hasVersion", std::to_string(source.site.identity.version)},
                    {"domicile:notExpressed", std::move(cannot)}};
  if (!rules.permissions.empty()) {
    set.emplace("permission", std::move(rules.permissions));
  }
  if (!rules.prohibitions.empty()) {
    set.emplace("prohibition", std::move(rules.prohibitions));
  }
  return internal::PrintIndented(std::move(set));
}

}  // namespace domicile::policy
