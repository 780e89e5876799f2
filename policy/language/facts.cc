#include "policy/language/facts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/toml.h"
#include "policy/language/statement_rule.h"
#include "policy/language/toml_codes.h"
#include "policy/language/validate.h"

namespace domicile::policy {
namespace {

constexpr std::array<std::string_view, 7> kKinds = {
    "bloc",      "territory",    "free_flow", "adequacy", "country_of_concern",
    "threshold", "negative_list"};

FactKind ReadKind(TomlTable& table) {
  const std::string text = table.String("kind");
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] == text) {
      return static_cast<FactKind>(i + 1);
    }
  }
  if (table.Has("kind")) {
    FailUnknownCode(table, "kind", text, {kKinds.begin(), kKinds.end()});
  }
  return FactKind::kNone;
}

void ReadBloc(TomlTable& table, Fact& fact) {
  fact.bloc = table.String("bloc");
  const auto names = BlocNames();
  if (table.Has("bloc") && std::find(names.begin(), names.end(), fact.bloc) == names.end()) {
    FailUnknownCode(table, "bloc", fact.bloc, {names.begin(), names.end()});
  }
  fact.members = TryPlaces(table, "members", true).value_or(std::set<Jurisdiction>{});
}

std::set<Area> ReadSomeAreas(TomlTable& table, std::string_view key) {
  table.Strings(key);  // wanted
  std::set<Area> areas = TryAreas(table, key).value_or(std::set<Area>{});
  if (areas.empty()) {
    table.Fail(key, "must not be empty");
  }
  return areas;
}

void ReadThreshold(TomlTable& table, Fact& fact) {
  fact.regime = ReadCode<Regime>(table, "regime");
  fact.at_least = static_cast<std::uint64_t>(table.Int("at_least", 1, kLargestJsonInteger));
  if (const auto categories = TryCodes<Category>(table, "categories")) {
    fact.categories = *categories;
    if (categories->empty()) {
      table.Fail("categories", "must not be empty; leave it out for any category");
    }
  }
  if (const auto mechanisms = TryCodes<Mechanism>(table, "requires")) {
    fact.mechanisms = *mechanisms;
    if (mechanisms->empty()) {
      table.Fail("requires", "must not be empty; write a negative_list to forbid every transfer");
    }
  }
}

Fact ReadFact(TomlTable table) {
  Fact fact;
  fact.line = table.Line();
  fact.id = table.String("id");
  if (table.Has("id") && !IsRuleId(fact.id)) {
    table.Fail("id", "must be 1 to 40 letters, digits and `. _ -`");
  }
  fact.kind = ReadKind(table);
  switch (fact.kind) {
    case FactKind::kNone:
      break;
    case FactKind::kBloc:
      ReadBloc(table, fact);
      break;
    case FactKind::kTerritory:
      fact.regime = ReadCode<Regime>(table, "regime");
      fact.from = ReadSomeAreas(table, "from");
      break;
    case FactKind::kFreeFlow:
    case FactKind::kAdequacy:
    case FactKind::kCountryOfConcern:
    case FactKind::kNegativeList:
      fact.regime = ReadCode<Regime>(table, "regime");
      fact.from = ReadSomeAreas(table, "from");
      fact.to = ReadSomeAreas(table, "to");
      if (fact.kind == FactKind::kAdequacy) {
        fact.scope = table.TryString("scope").value_or("");
      }
      break;
    case FactKind::kThreshold:
      ReadThreshold(table, fact);
      break;
  }
  fact.from_date = table.Time("from_date");
  fact.until_date = table.TryTime("until_date");
  if (fact.until_date && *fact.until_date <= fact.from_date) {
    table.Fail("until_date", "must be after from_date");
  }
  fact.source = table.String("source");
  table.TryString("checked_by");  // so that neither of the two is taken for the other, misspelt
  fact.checked_on = table.Time("checked_on");
  fact.checked_by = table.String("checked_by");
  return fact;
}

Json AreasJson(const std::set<Area>& areas) { return TextsJson(areas); }

}  // namespace

std::string_view Code(FactKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index == 0 || index > kKinds.size() ? "unset" : kKinds[index - 1];
}

bool Fact::HoldsAt(WallTime now) const {
  return from_date <= now && (!until_date || now < *until_date);
}

Json Facts::ToJson() const {
  std::vector<std::pair<std::string, Json>> entries;
  for (const Fact& fact : facts) {
    JsonObject json = {{"id", fact.id},
                       {"kind", std::string(Code(fact.kind))},
                       {"from_date", PrintTime(fact.from_date)},
                       {"source", fact.source},
                       {"checked_by", fact.checked_by},
                       {"checked_on", PrintTime(fact.checked_on)}};
    if (fact.kind == FactKind::kBloc) {
      json.emplace("bloc", fact.bloc);
      json.emplace("members", TextsJson(fact.members));
    } else if (fact.kind == FactKind::kThreshold) {
      json.emplace("regime", std::string(Code(fact.regime)));
      json.emplace("categories", CodesJson(fact.categories));
      json.emplace("at_least", fact.at_least);
      json.emplace("requires", CodesJson(fact.mechanisms));
    } else {
      json.emplace("regime", std::string(Code(fact.regime)));
      json.emplace("from", AreasJson(fact.from));
      json.emplace("to", AreasJson(fact.to));
      json.emplace("scope", fact.scope);
    }
    if (fact.until_date) {
      json.emplace("until_date", PrintTime(*fact.until_date));
    }
    entries.emplace_back(fact.id, std::move(json));
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  JsonArray list;
  for (auto& entry : entries) {
    list.push_back(std::move(entry.second));
  }
  return JsonObject{{"id", id},
                    {"version", version},
                    {"expires", PrintTime(expires)},
                    {"facts", std::move(list)}};
}

StatusOr<Facts> ParseFacts(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(text, file));
  TomlTable root = document.Root();
  const std::vector<TomlTable> tables = root.Tables("fact");
  TomlTable head = root.Table("facts");
  Facts facts;
  facts.file = file;
  facts.id = head.String("id");
  if (head.Has("id") && !IsPolicyId(facts.id)) {
    head.Fail("id", "must be 1 to 80 lower-case letters, digits and `/ . _ -`");
  }
  facts.version = static_cast<std::uint64_t>(head.Int("version", 1, kLargestJsonInteger));
  facts.expires = head.Time("expires");
  std::set<std::string> ids;
  for (TomlTable table : tables) {
    facts.facts.push_back(ReadFact(table));
    if (!ids.insert(facts.facts.back().id).second) {
      table.Fail("id", "is used twice");
    }
  }
  RETURN_IF_ERROR(document.Finish());
  return facts;
}

Cover Covers(const Area& area, const Jurisdiction& place, const Facts& facts, WallTime now,
             std::set<std::string>* used) {
  if (!area.IsBloc()) {
    return area.Place().Covers(place) ? Cover::kYes : Cover::kNo;
  }
  if (now >= facts.expires) {
    return Cover::kUnknown;
  }
  bool known = false;
  bool inside = false;
  for (const Fact& fact : facts.facts) {
    if (fact.kind != FactKind::kBloc || fact.bloc != area.text() || !fact.HoldsAt(now)) {
      continue;
    }
    known = true;
    if (used != nullptr) {
      used->insert(fact.id);
    }
    inside = inside ||
             std::any_of(fact.members.begin(), fact.members.end(),
                         [&place](const Jurisdiction& member) { return member.Covers(place); });
  }
  if (!known) {
    return Cover::kUnknown;
  }
  return inside ? Cover::kYes : Cover::kNo;
}

Cover Overlaps(const Area& area, const Jurisdiction& place, const Facts& facts, WallTime now,
               std::set<std::string>* used) {
  if (!area.IsBloc() && place.Covers(area.Place())) {
    return Cover::kYes;
  }
  return Covers(area, place, facts, now, used);
}

}  // namespace domicile::policy
