// Cedar: policies for an authorisation service. Everything that allows stands in one `permit` for a
// dataset and an action, because Cedar's permits are alternatives to each other and our rules are
// not; everything that denies is a `forbid` that reads only what every request has, because Cedar
// skips a policy that fails.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "policy/exporting/export.h"
#include "policy/exporting/internal/conditions.h"

namespace domicile::policy {
namespace {

using internal::About;
using internal::Condition;
using internal::Relation;
using internal::Step;
using internal::ValueKind;

// Cedar has no fractions beyond four digits: a decimal is a whole number of billionths.
constexpr double kNano = 1e9;
constexpr double kMostNano = 9.2e18;

std::string Quote(std::string_view text) { return PrintJson(Json(std::string(text))); }

std::string Quoted(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) {
    list += (list.empty() ? "" : ", ") + Quote(text);
  }
  return "[" + list + "]";
}

// The request's attribute that a key is compared with: a deny rule reads the same one.
std::string Attribute(const Condition& condition) {
  const std::string name =
      condition.key.starts_with("deny_") ? condition.key.substr(5) : condition.key;
  return condition.kind == ValueKind::kDecimal ? name + "_nano" : name;
}

std::string PlaceEntity(std::string_view area) { return "Domicile::Place::" + Quote(area); }

std::string Number(const Condition& condition) {
  const std::string& text = condition.values.front();
  if (condition.kind != ValueKind::kDecimal) {
    return text;
  }
  const double nano = std::min(std::round(std::strtod(text.c_str(), nullptr) * kNano), kMostNano);
  return std::to_string(static_cast<std::int64_t>(nano));
}

// Every country, and every subdivision that the policies name.
std::set<Jurisdiction> PlacesOf(const ExportSource& source) {
  std::set<Jurisdiction> places;
  const auto add = [&places](std::string_view text) {
    if (StatusOr<Jurisdiction> place = Jurisdiction::Parse(text); place.ok()) {
      places.insert(*std::move(place));
    }
  };
  for (const std::string_view code : CountryCodes()) {
    add(code);
  }
  if (source.site.site) {
    places.insert(source.site.site->jurisdiction);
  }
  for (const Fact& fact : source.effective.LegalFacts().facts) {
    places.insert(fact.members.begin(), fact.members.end());
    for (const Area& area : fact.from) {
      add(area.text());
    }
    for (const Area& area : fact.to) {
      add(area.text());
    }
  }
  return places;
}

// Cedar cannot ask whether each of a set lies in an area, so the areas are written out as
// countries.
StatusOr<std::vector<std::string>> CountriesOf(const Condition& condition,
                                               const ExportSource& source, WallTime now) {
  std::vector<std::string> countries;
  for (const std::string& text : condition.values) {
    ASSIGN_OR_RETURN(const Area area, Area::Parse(text));
    for (const std::string_view code : CountryCodes()) {
      ASSIGN_OR_RETURN(const Jurisdiction country, Jurisdiction::Parse(code));
      const Cover cover = Covers(area, country, source.effective.LegalFacts(), now, nullptr);
      if (cover == Cover::kUnknown) {
        return Error(StatusCode::kFailedPrecondition,
                     "`" + text + "` in " + condition.key +
                         ": no legal fact says who is in it; give --facts");
      }
      if (cover == Cover::kYes) {
        countries.emplace_back(code);
      }
    }
  }
  std::sort(countries.begin(), countries.end());
  countries.erase(std::unique(countries.begin(), countries.end()), countries.end());
  return countries;
}

std::string WhoMatches(const std::vector<std::string>& tokens) {
  std::string any;
  for (const std::string& token : tokens) {
    constexpr std::string_view kOperator = "operator/";
    std::string each;
    if (token == "sites") {
      each = "principal.role == \"site\"";
    } else if (token == "operator") {
      each = "principal.role == \"operator\"";
    } else if (token.starts_with(kOperator)) {
      each = "(principal.role == \"operator\" && principal.name == " +
             Quote(token.substr(kOperator.size())) + ")";
    } else {
      each = "(principal.role == \"site\" && principal.name == " + Quote(token) + ")";
    }
    any += (any.empty() ? "" : " || ") + each;
  }
  return any.empty() ? "false" : "(" + any + ")";
}

std::string PlaceMatches(const std::vector<std::string>& areas) {
  std::string list;
  for (const std::string& area : areas) {
    list += (list.empty() ? "" : ", ") + PlaceEntity(area);
  }
  return "principal.place in [" + list + "]";
}

StatusOr<std::string> PlainDemand(const Condition& condition, const ExportSource& source,
                                  WallTime now) {
  const std::string attribute = "context." + Attribute(condition);
  if (condition.about == About::kPlace) {
    return PlaceMatches(condition.values);
  }
  if (condition.about == About::kWho) {
    return WhoMatches(condition.values);
  }
  if (condition.kind == ValueKind::kArea) {
    ASSIGN_OR_RETURN(const std::vector<std::string> countries, CountriesOf(condition, source, now));
    const bool is_control = condition.about == About::kControl;
    return Quoted(countries) + ".containsAll(" + (is_control ? "principal.control" : attribute) +
           ")" + (is_control ? " && !principal.control.isEmpty()" : "");
  }
  switch (condition.relation) {
    case Relation::kAnyOf:
      return Quoted(condition.values) + (condition.is_many ? ".containsAll(" : ".contains(") +
             attribute + ")";
    case Relation::kAtMost:
      return attribute + " <= " + Number(condition);
    case Relation::kAtLeast:
      return attribute + " >= " + Number(condition);
    case Relation::kAbove:
      return attribute + " > " + Number(condition);
    case Relation::kIs:
      return attribute;
    case Relation::kNoneOf:
      break;
  }
  return Error(StatusCode::kInternal, "`" + condition.key + "` is no demand");
}

// What must be true for an allowing condition to hold.
StatusOr<std::string> Demand(const Condition& condition, const ExportSource& source, WallTime now) {
  ASSIGN_OR_RETURN(std::string demand, PlainDemand(condition, source, now));
  return condition.needs_dp ? "(context.dp_mode == \"none\" || " + demand + ")" : demand;
}

// What makes a deny rule match. A place that may lie in a denied subdivision is denied too.
std::string Denial(const Condition& condition) {
  if (condition.about == About::kWho) {
    return WhoMatches(condition.values);
  }
  if (condition.about == About::kContent) {
    const std::string attribute = "context." + Attribute(condition);
    return condition.is_many ? attribute + ".containsAny(" + Quoted(condition.values) + ")"
                             : Quoted(condition.values) + ".contains(" + attribute + ")";
  }
  const std::string who = condition.about == About::kPlace ? "principal.place" : "principal";
  std::string any;
  for (const std::string& area : condition.values) {
    any += (any.empty() ? "" : " || ") + who + " in " + PlaceEntity(area);
    if (area.find('-') != std::string::npos) {
      any += condition.about == About::kPlace
                 ? " || principal.place == " + PlaceEntity(area.substr(0, 2))
                 : " || principal.control.contains(" + Quote(area.substr(0, 2)) + ")";
    }
  }
  return any;
}

std::string ActionName(Step step) { return step == Step::kSend ? "send" : "release"; }

std::string Scope(std::string_view effect, std::string_view id, std::string_view alias,
                  std::string_view action) {
  return "@id(" + Quote(id) + ")\n" + std::string(effect) + " (\n  principal,\n  action " +
         std::string(action) + ",\n  resource == Domicile::Dataset::" + Quote(alias) + "\n)\n";
}

std::string Approvals(const JsonObject& folded) {
  std::string all;
  const auto approvals = folded.find("approvals");
  if (approvals == folded.end() || approvals->second.TryObject() == nullptr) {
    return all;
  }
  for (const auto& [role, wanted] : *approvals->second.TryObject()) {
    const Json* const count = wanted.Find("count");
    const std::int64_t* const number = (count != nullptr ? *count : wanted).TryInt();
    all += " &&\n  context.approvals." + role +
           " >= " + std::to_string(number != nullptr ? *number : 1);
  }
  return all;
}

StatusOr<std::string> Permit(const ExportSource& source, const std::string& alias,
                             const std::vector<Condition>& conditions, const JsonObject& folded,
                             Step step, WallTime now) {
  const PolicyIdentity& identity = source.site.identity;
  const auto seconds = [](WallTime time) {
    return std::to_string(
        std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  const std::string action = ActionName(step);
  std::string text =
      Scope("permit", action + "-" + alias, alias, "== Domicile::Action::" + Quote(action)) +
      "when {\n  context.now >= " + seconds(identity.not_before) + " &&\n  context.now < " +
      seconds(identity.expires) + " &&\n  context.legal_ground";
  if (step == Step::kSend) {
    text += " &&\n  principal.role == \"aggregator\"";
  }
  for (const Condition& condition : conditions) {
    if (Applies(condition.step, step) && condition.relation != Relation::kNoneOf) {
      ASSIGN_OR_RETURN(const std::string demand, Demand(condition, source, now));
      text += " &&\n  " + demand;
    }
  }
  return text + (step == Step::kSend ? Approvals(folded) : "") + "\n};\n";
}

std::string Forbids(const std::string& alias, const std::vector<Condition>& conditions) {
  std::string text;
  for (const Condition& condition : conditions) {
    if (condition.relation != Relation::kNoneOf) {
      continue;
    }
    const std::string action =
        condition.step == Step::kBoth
            ? "in [Domicile::Action::\"send\", Domicile::Action::\"release\"]"
            : "== Domicile::Action::" + Quote(ActionName(condition.step));
    text += "\n" + Scope("forbid", condition.key + "-" + alias, alias, action) + "when { " +
            Denial(condition) + " };\n";
  }
  return text;
}

std::string TypeOf(const Condition& condition) {
  switch (condition.kind) {
    case ValueKind::kText:
    case ValueKind::kArea:
      return condition.is_many ? "Set<String>" : "String";
    case ValueKind::kInteger:
    case ValueKind::kDecimal:
    case ValueKind::kDuration:
      return "Long";
    case ValueKind::kFlag:
      return "Bool";
  }
  return "String";
}

std::string ContextType(Step step) {
  std::string text;
  std::set<std::string> written;
  for (const Condition& condition : internal::EveryCondition()) {
    if (condition.about == About::kContent && Applies(condition.step, step) &&
        written.insert(Attribute(condition)).second) {
      text += "    " + Attribute(condition) + ": " + TypeOf(condition) + ",\n";
    }
  }
  return text;
}

}  // namespace

std::vector<std::string_view> CedarCannotSay() {
  return {
      "hold: an approval that is missing denies here",
      "the legal ground of a border, and the documents it needs: `legal_ground` is the caller's",
      "that an error denies: Cedar skips a policy that fails, so validate requests by the schema",
      "fractions: decimals are billionths, rounded (`..._nano`)",
      "whether each of a set lies in an area: controlling places and relays are countries,"
      " written out for the day of the export",
      "sums over rounds and jobs: the caller gives them, this run included",
      "obligations: clip, rounding and minimum counts are demanded of the request",
      "reasons, and what would have to change",
      "who signed the policy, and how it may be loosened"};
}

StatusOr<std::string> ExportCedar(const ExportSource& source, WallTime now) {
  ASSIGN_OR_RETURN(const JsonObject datasets, internal::FoldedDatasets(source.effective));
  std::string text = "// Policy `" + source.site.identity.id + "` version " +
                     std::to_string(source.site.identity.version) + ", blocs as of " +
                     PrintTime(now) + ". Not in it:\n";
  for (const std::string_view sentence : CedarCannotSay()) {
    text += "// - " + std::string(sentence) + "\n";
  }
  for (const auto& [alias, terms] : datasets) {
    const JsonObject& keys = *terms.TryObject();
    ASSIGN_OR_RETURN(const std::vector<Condition> conditions, internal::ConditionsOf(keys));
    for (const Step step : {Step::kSend, Step::kRelease}) {
      ASSIGN_OR_RETURN(const std::string permit,
                       Permit(source, alias, conditions, keys, step, now));
      text += "\n" + permit;
    }
    text += Forbids(alias, conditions);
  }
  return text;
}

std::string ExportCedarSchema() {
  std::string roles;
  for (const ApprovalRole role : AllOf<ApprovalRole>()) {
    roles += (roles.empty() ? "" : ", ") + std::string(Code(role)) + ": Long";
  }
  const std::string common =
      "    now: Long,  // seconds since 1970, UTC\n"
      "    legal_ground: Bool,\n";
  return "// Requests of the exported policies. An attribute has the name of the key that limits "
         "it\n"
         "// (docs/policy.md) and the value that the request has: `rounds` is the plan's, "
         "`min_cohort`\n"
         "// the records behind the numbers, `epsilon_total_nano` what is spent with this run.\n"
         "namespace Domicile {\n"
         "  // ISO 3166 places and blocs; a subdivision is in its country, a country in its "
         "blocs.\n"
         "  entity Place in [Place];\n"
         "  // Who receives; a member of the places it is controlled from.\n"
         "  entity Party in [Place] {\n"
         "    role: String,  // aggregator, site or operator\n"
         "    name: String,\n"
         "    place: Place,\n"
         "    control: Set<String>,  // countries\n"
         "  };\n"
         "  entity Dataset;\n"
         "  action send appliesTo {\n    principal: [Party],\n    resource: [Dataset],\n"
         "    context: SendContext,\n  };\n"
         "  action release appliesTo {\n    principal: [Party],\n    resource: [Dataset],\n"
         "    context: ReleaseContext,\n  };\n"
         "  type SendContext = {\n" +
         common + "    approvals: { " + roles + " },\n" + ContextType(Step::kSend) +
         "  };\n  type ReleaseContext = {\n" + common + ContextType(Step::kRelease) + "  };\n}\n";
}

StatusOr<std::string> ExportCedarEntities(const ExportSource& source, WallTime now) {
  const auto name = [](std::string_view id) -> Json {
    return JsonObject{{"type", "Domicile::Place"}, {"id", std::string(id)}};
  };
  JsonArray entities;
  for (const std::string_view bloc : BlocNames()) {
    entities.emplace_back(
        JsonObject{{"uid", name(bloc)}, {"attrs", JsonObject{}}, {"parents", JsonArray{}}});
  }
  for (const Jurisdiction& place : PlacesOf(source)) {
    JsonArray parents;
    if (place.IsSubdivision()) {
      parents.push_back(name(place.Country()));
    }
    for (const std::string_view bloc : BlocNames()) {
      ASSIGN_OR_RETURN(const Area area, Area::Parse(bloc));
      if (Covers(area, place, source.effective.LegalFacts(), now, nullptr) == Cover::kYes) {
        parents.push_back(name(bloc));
      }
    }
    entities.emplace_back(JsonObject{
        {"uid", name(place.text())}, {"attrs", JsonObject{}}, {"parents", std::move(parents)}});
  }
  return internal::PrintIndented(std::move(entities));
}

}  // namespace domicile::policy
