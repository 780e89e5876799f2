#include "policy/exporting/internal/conditions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "policy/language/vocabulary.h"

namespace domicile::policy::internal {
namespace {

// How a key of the effective policy is compared with a request.
enum class Form : std::uint8_t {
  kAreaLists = 1,  // a list of lists, each of which must cover
  kAllowed = 2,    // a list: nothing else
  kDenied = 3,     // a list: none of these
  kAtMost = 4,     // a number
  kAtLeast = 5,    // a number
  kDemanded = 6,   // true: must be so
  kOrdered = 7,    // a code of an ordered list, told as the codes that satisfy it
  kAbove = 8,      // a number, not itself
};

struct Key {
  std::string_view name;
  About about;
  Step step;
  Form form;
  ValueKind kind;
  bool is_many = false;
  // Of kOrdered: every code that satisfies `code`.
  std::vector<std::string> (*satisfying)(const std::string& code) = nullptr;
  bool needs_dp = false;
};

template <typename E>
std::vector<std::string> AtMost(const std::string& code) {
  std::vector<std::string> codes;
  const std::optional<E> limit = FromCode<E>(code);
  for (const E value : AllOf<E>()) {
    if (limit && value <= *limit) {
      codes.emplace_back(Code(value));
    }
  }
  return codes;
}

template <typename E>
std::vector<std::string> AtLeast(const std::string& code) {
  std::vector<std::string> codes;
  const std::optional<E> limit = FromCode<E>(code);
  for (const E value : AllOf<E>()) {
    if (limit && value >= *limit) {
      codes.emplace_back(Code(value));
    }
  }
  return codes;
}

constexpr About kPlace = About::kPlace;
constexpr About kControl = About::kControl;
constexpr About kWho = About::kWho;
constexpr About kContent = About::kContent;
constexpr Step kSend = Step::kSend;
constexpr Step kRelease = Step::kRelease;
constexpr Step kBoth = Step::kBoth;
constexpr ValueKind kText = ValueKind::kText;
constexpr ValueKind kArea = ValueKind::kArea;
constexpr ValueKind kInteger = ValueKind::kInteger;
constexpr ValueKind kDecimal = ValueKind::kDecimal;
constexpr ValueKind kDuration = ValueKind::kDuration;

// In the order of docs/formats/policy.md.
const std::array kKeys = {
    Key{"aggregator_locations", kPlace, kSend, Form::kAreaLists, kArea},
    Key{"aggregator_control", kControl, kSend, Form::kAreaLists, kArea},
    Key{"transit", kContent, kSend, Form::kAreaLists, kArea, true},
    Key{"model_recipients", kPlace, kRelease, Form::kAreaLists, kArea},
    Key{"model_recipients", kControl, kRelease, Form::kAreaLists, kArea},
    Key{"recipients", kWho, kRelease, Form::kAllowed, kText},
    Key{"update_kinds", kContent, kBoth, Form::kAllowed, kText, true},
    Key{"purposes", kContent, kBoth, Form::kAllowed, kText},
    Key{"aggregator_view", kContent, kSend, Form::kOrdered, kText, false, AtMost<View>},
    Key{"models", kContent, kSend, Form::kAllowed, kText},
    Key{"trainers", kContent, kSend, Form::kAllowed, kText},
    Key{"deny_locations", kPlace, kBoth, Form::kDenied, kArea},
    Key{"deny_control", kControl, kBoth, Form::kDenied, kArea},
    Key{"deny_recipients", kWho, kRelease, Form::kDenied, kText},
    Key{"deny_update_kinds", kContent, kBoth, Form::kDenied, kText, true},
    Key{"deny_outputs", kContent, kSend, Form::kDenied, kText, true},
    Key{"deny_purposes", kContent, kBoth, Form::kDenied, kText},
    Key{"evidence", kContent, kBoth, Form::kOrdered, kText, false, AtLeast<LocationEvidence>},
    Key{"min_contributors", kContent, kRelease, Form::kAtLeast, kInteger},
    Key{"min_cohort", kContent, kSend, Form::kAtLeast, kInteger},
    Key{"min_batch", kContent, kSend, Form::kAtLeast, kInteger},
    Key{"min_local_steps", kContent, kSend, Form::kAtLeast, kInteger},
    Key{"clip_l2", kContent, kSend, Form::kAtMost, kDecimal},
    Key{"dp_mode", kContent, kSend, Form::kOrdered, kText, false, AtLeast<DpMode>},
    Key{"dp_unit", kContent, kSend, Form::kOrdered, kText, false, AtLeast<DpUnit>, true},
    Key{"sampling", kContent, kSend, Form::kOrdered, kText, false, AtLeast<Sampling>, true},
    Key{"require_secagg", kContent, kSend, Form::kDemanded, ValueKind::kFlag},
    Key{"secagg_threshold", kContent, kSend, Form::kAbove, kDecimal},
    Key{"rounds", kContent, kSend, Form::kAtMost, kInteger},
    Key{"runs_per_day", kContent, kSend, Form::kAtMost, kInteger},
    Key{"update_bytes", kContent, kSend, Form::kAtMost, kInteger},
    Key{"metrics", kContent, kSend, Form::kAtMost, kInteger},
    Key{"released_numbers_per_record", kContent, kSend, Form::kAtMost, kDecimal},
    Key{"params_per_record", kContent, kSend, Form::kAtMost, kDecimal},
    Key{"epsilon_total", kContent, kSend, Form::kAtMost, kDecimal, false, nullptr, true},
    Key{"epsilon_per_run", kContent, kSend, Form::kAtMost, kDecimal, false, nullptr, true},
    Key{"delta", kContent, kSend, Form::kAtMost, kDecimal, false, nullptr, true},
    Key{"export_subjects_per_year", kContent, kSend, Form::kAtMost, kInteger},
    Key{"sandbox_network", kContent, kSend, Form::kOrdered, kText, false, AtMost<SandboxNetwork>},
    Key{"sandbox_profile", kContent, kSend, Form::kOrdered, kText, false, AtLeast<SandboxProfile>},
    Key{"weights", kContent, kSend, Form::kOrdered, kText, false, AtMost<WeightRule>},
    Key{"audit_min", kContent, kSend, Form::kAtLeast, kDuration},
    Key{"update_max", kContent, kSend, Form::kAtMost, kDuration},
    Key{"model_review", kContent, kSend, Form::kAtMost, kDuration},
    Key{"on_withdrawal", kContent, kSend, Form::kOrdered, kText, false, AtLeast<ErasureRule>},
    Key{"witnesses_min", kContent, kSend, Form::kAtLeast, kInteger},
    Key{"max_unwitnessed_age", kContent, kSend, Form::kAtMost, kDuration},
    Key{"max_skew", kContent, kSend, Form::kAtMost, kDuration},
};

Relation RelationOf(Form form) {
  switch (form) {
    case Form::kAreaLists:
    case Form::kAllowed:
    case Form::kOrdered:
      return Relation::kAnyOf;
    case Form::kDenied:
      return Relation::kNoneOf;
    case Form::kAtMost:
      return Relation::kAtMost;
    case Form::kAtLeast:
      return Relation::kAtLeast;
    case Form::kAbove:
      return Relation::kAbove;
    case Form::kDemanded:
      return Relation::kIs;
  }
  return Relation::kIs;
}

// What is asked only where another key asks for something.
bool IsAsked(std::string_view key, const JsonObject& folded) {
  if (key == "secagg_threshold") {
    const auto wanted = folded.find("require_secagg");
    return wanted != folded.end() && wanted->second == Json(true);
  }
  if (key == "max_unwitnessed_age") {
    const auto witnesses = folded.find("witnesses_min");
    return witnesses == folded.end() || !(witnesses->second == Json(0));
  }
  return true;
}

std::vector<std::string> TextsOf(const Json& list) {
  std::vector<std::string> texts;
  if (const JsonArray* const items = list.TryArray()) {
    for (const Json& item : *items) {
      if (const std::string* const text = item.TryString()) {
        texts.push_back(*text);
      }
    }
  }
  return texts;
}

std::string NumberText(const Json& value) {
  if (const std::int64_t* const number = value.TryInt()) {
    return std::to_string(*number);
  }
  return value.TryString() != nullptr ? *value.TryString() : "";
}

void Append(const Key& key, const Json& value, std::vector<Condition>& conditions) {
  Condition condition = {std::string(key.name), key.about,    key.step, Relation::kAnyOf, key.kind,
                         key.is_many,           key.needs_dp, {}};
  switch (key.form) {
    case Form::kAreaLists:
      if (const JsonArray* const lists = value.TryArray()) {
        for (const Json& list : *lists) {
          condition.values = TextsOf(list);
          conditions.push_back(condition);
        }
      }
      return;
    case Form::kAllowed:
      condition.values = TextsOf(value);
      break;
    case Form::kDenied:
      condition.relation = Relation::kNoneOf;
      condition.values = TextsOf(value);
      if (condition.values.empty()) {
        return;  // denies nothing
      }
      break;
    case Form::kAtMost:
    case Form::kAtLeast:
    case Form::kAbove:
      condition.relation = RelationOf(key.form);
      condition.values = {NumberText(value)};
      break;
    case Form::kDemanded:
      if (value.TryBool() == nullptr || !*value.TryBool()) {
        return;  // demands nothing
      }
      condition.relation = Relation::kIs;
      condition.values = {"true"};
      break;
    case Form::kOrdered:
      condition.values = key.satisfying(value.TryString() != nullptr ? *value.TryString() : "");
      break;
  }
  conditions.push_back(std::move(condition));
}

void Indent(const Json& value, std::size_t depth, std::string& out);

void IndentItems(const JsonArray& items, std::size_t depth, std::string& out) {
  // A list of plain values stays on one line while it is short.
  const bool is_flat = std::none_of(items.begin(), items.end(), [](const Json& item) {
    return item.TryArray() != nullptr || item.TryObject() != nullptr;
  });
  const std::string line = PrintJson(JsonArray(items));
  if (items.empty() || (is_flat && line.size() + depth <= 90)) {
    out += line;
    return;
  }
  out += "[\n";
  for (std::size_t i = 0; i < items.size(); ++i) {
    out.append(depth + 2, ' ');
    Indent(items[i], depth + 2, out);
    out += i + 1 < items.size() ? ",\n" : "\n";
  }
  out.append(depth, ' ');
  out += "]";
}

void Indent(const Json& value, std::size_t depth, std::string& out) {
  if (const JsonArray* const items = value.TryArray()) {
    return IndentItems(*items, depth, out);
  }
  const JsonObject* const members = value.TryObject();
  if (members == nullptr || members->empty()) {
    out += PrintJson(value);
    return;
  }
  out += "{\n";
  std::size_t written = 0;
  for (const auto& [key, member] : *members) {
    out.append(depth + 2, ' ');
    out += PrintJson(Json(key)) + ": ";
    Indent(member, depth + 2, out);
    out += ++written < members->size() ? ",\n" : "\n";
  }
  out.append(depth, ' ');
  out += "}";
}

}  // namespace

bool IsSpecialKey(std::string_view key) {
  // Approvals, grounds and documents are told as such; the rest cannot be told at all.
  constexpr std::array<std::string_view, 12> kSpecial = {
      "approvals",   "approval_max_age", "budget_window", "contributors",
      "derogations", "grounds",          "has_rule",      "site_evidence",
      "traits",      "dpia_valid_until", "regimes",       "special_category"};
  return std::find(kSpecial.begin(), kSpecial.end(), key) != kSpecial.end();
}

StatusOr<std::vector<Condition>> ConditionsOf(const JsonObject& folded) {
  for (const auto& [name, value] : folded) {
    const bool is_known = std::any_of(kKeys.begin(), kKeys.end(),
                                      [&name = name](const Key& key) { return key.name == name; });
    if (!is_known && !IsSpecialKey(name)) {
      return Error(StatusCode::kInternal, "an export does not know the key `" + name + "`");
    }
  }
  std::vector<Condition> conditions;
  for (const Key& key : kKeys) {
    const auto found = folded.find(key.name);
    if (found != folded.end() && IsAsked(key.name, folded)) {
      Append(key, found->second, conditions);
    }
  }
  return conditions;
}

std::vector<Condition> EveryCondition() {
  std::vector<Condition> conditions;
  for (const Key& key : kKeys) {
    conditions.push_back({std::string(key.name),
                          key.about,
                          key.step,
                          RelationOf(key.form),
                          key.kind,
                          key.is_many,
                          key.needs_dp,
                          {}});
  }
  return conditions;
}

StatusOr<JsonObject> FoldedDatasets(const Effective& effective) {
  ASSIGN_OR_RETURN(const Json text, ParseJson(effective.Text()));
  const Json* const datasets = text.Find("datasets");
  if (datasets == nullptr || datasets->TryObject() == nullptr || datasets->TryObject()->empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "the policy describes no dataset, so it allows nothing that could be exported");
  }
  return *datasets->TryObject();
}

std::string PrintIndented(const Json& value) {
  std::string out;
  Indent(value, 0, out);
  return out + "\n";
}

}  // namespace domicile::policy::internal
