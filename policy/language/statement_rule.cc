#include "policy/language/statement_rule.h"

#include "base/text.h"

namespace domicile::policy {
namespace {

// Writes the optional members of one nested object, and leaves out an empty object.
class Writer {
 public:
  void Set(std::string_view key, Json value) { json_.emplace(key, std::move(value)); }
  template <typename T>
  void Number(std::string_view key, const std::optional<T>& value) {
    if (value) {
      Set(key, Json(static_cast<std::uint64_t>(*value)));
    }
  }
  void Decimal(std::string_view key, const std::optional<double>& value) {
    if (value) {
      Set(key, PrintDouble(*value));
    }
  }
  template <typename E>
  void OneCode(std::string_view key, const std::optional<E>& value) {
    if (value) {
      Set(key, std::string(Code(*value)));
    }
  }
  void Into(std::string_view key, JsonObject& parent) {
    if (!json_.empty()) {
      parent.emplace(key, std::move(json_));
    }
  }

 private:
  JsonObject json_;
};

Json NamesJson(const std::set<std::string>& names) { return JsonArray(names.begin(), names.end()); }

void AddAllow(const Rule& rule, JsonObject& json) {
  Writer allow;
  if (rule.aggregator_locations) {
    allow.Set("aggregator_locations", TextsJson(*rule.aggregator_locations));
  }
  if (rule.aggregator_control) {
    allow.Set("aggregator_control", TextsJson(*rule.aggregator_control));
  }
  if (rule.recipients) {
    allow.Set("recipients", NamesJson(*rule.recipients));
  }
  if (rule.update_kinds) {
    allow.Set("update_kinds", CodesJson(*rule.update_kinds));
  }
  if (rule.purposes) {
    allow.Set("purposes", CodesJson(*rule.purposes));
  }
  allow.OneCode("aggregator_view", rule.aggregator_view);
  allow.Into("allow", json);
}

void AddDeny(const Rule& rule, JsonObject& json) {
  Writer deny;
  if (!rule.deny_locations.empty()) {
    deny.Set("locations", TextsJson(rule.deny_locations));
  }
  if (!rule.deny_control.empty()) {
    deny.Set("control", TextsJson(rule.deny_control));
  }
  if (!rule.deny_recipients.empty()) {
    deny.Set("recipients", NamesJson(rule.deny_recipients));
  }
  if (!rule.deny_update_kinds.empty()) {
    deny.Set("update_kinds", CodesJson(rule.deny_update_kinds));
  }
  deny.Into("deny", json);
}

void AddNumbers(const Rule& rule, JsonObject& json) {
  Writer privacy;
  privacy.Number("min_contributors", rule.min_contributors);
  privacy.Number("min_cohort", rule.min_cohort);
  privacy.Number("min_batch", rule.min_batch);
  privacy.Number("min_local_steps", rule.min_local_steps);
  privacy.Decimal("clip_l2", rule.clip_l2);
  privacy.OneCode("dp_mode", rule.dp_mode);
  if (rule.require_secagg) {
    privacy.Set("require_secagg", Json(*rule.require_secagg));
  }
  privacy.Into("privacy", json);
  Writer limit;
  limit.Number("rounds", rule.rounds);
  limit.Number("runs_per_day", rule.runs_per_day);
  limit.Number("update_bytes", rule.update_bytes);
  limit.Decimal("released_numbers_per_record", rule.released_numbers_per_record);
  limit.Number("metrics", rule.metrics);
  limit.Decimal("params_per_record", rule.params_per_record);
  limit.Into("limit", json);
}

Json GroundJson(const TransferGround& ground) {
  JsonObject json = {{"to", ground.to.text()},
                     {"mechanism", std::string(Code(ground.mechanism))},
                     {"line", ground.line}};
  if (ground.valid_until) {
    json.emplace("valid_until", PrintTime(*ground.valid_until));
  }
  if (!ground.importer.empty()) {
    json.emplace("importer", ground.importer);
  }
  return json;
}

template <typename T>
std::optional<T> TryNumber(JsonReader& reader, std::string_view key, std::int64_t low) {
  const std::int64_t high = sizeof(T) == 8 ? kLargestJsonInteger : 1'000'000'000;
  const std::optional<std::int64_t> value = reader.TryInt(key, low, high);
  return value ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;
}

std::optional<double> TryDecimal(JsonReader& reader, std::string_view key, double low,
                                 double high) {
  const std::optional<std::string> text = reader.TryString(key);
  if (!text) {
    return std::nullopt;
  }
  const StatusOr<double> value = ParseDouble(*text);
  if (!value.ok() || !(*value >= low && *value <= high)) {
    reader.Fail(key, "is not a decimal in its range");
    return std::nullopt;
  }
  return *value;
}

std::set<std::string> ReadNames(JsonReader& reader, std::string_view key) {
  const std::vector<std::string> names = reader.Strings(key);
  return {names.begin(), names.end()};
}

void ReadAllow(JsonReader& reader, Rule& rule) {
  if (reader.Has("aggregator_locations")) {
    rule.aggregator_locations = ReadTexts<Area>(reader, "aggregator_locations");
  }
  if (reader.Has("aggregator_control")) {
    rule.aggregator_control = ReadTexts<Area>(reader, "aggregator_control");
  }
  if (reader.Has("recipients")) {
    rule.recipients = ReadNames(reader, "recipients");
  }
  if (reader.Has("update_kinds")) {
    rule.update_kinds = ReadCodes<UpdateKind>(reader, "update_kinds");
  }
  if (reader.Has("purposes")) {
    rule.purposes = ReadCodes<Purpose>(reader, "purposes");
  }
  if (reader.Has("aggregator_view")) {
    rule.aggregator_view = ReadCode<View>(reader, "aggregator_view");
  }
}

void ReadDeny(JsonReader& reader, Rule& rule) {
  if (reader.Has("locations")) {
    rule.deny_locations = ReadTexts<Area>(reader, "locations");
  }
  if (reader.Has("control")) {
    rule.deny_control = ReadTexts<Area>(reader, "control");
  }
  if (reader.Has("recipients")) {
    rule.deny_recipients = ReadNames(reader, "recipients");
  }
  if (reader.Has("update_kinds")) {
    rule.deny_update_kinds = ReadCodes<UpdateKind>(reader, "update_kinds");
  }
}

void ReadPrivacy(JsonReader& reader, Rule& rule) {
  rule.min_contributors = TryNumber<std::uint32_t>(reader, "min_contributors", 3);
  rule.min_cohort = TryNumber<std::uint64_t>(reader, "min_cohort", 1);
  rule.min_batch = TryNumber<std::uint32_t>(reader, "min_batch", 1);
  rule.min_local_steps = TryNumber<std::uint32_t>(reader, "min_local_steps", 1);
  rule.clip_l2 = TryDecimal(reader, "clip_l2", 1e-9, 1e9);
  if (reader.Has("dp_mode")) {
    rule.dp_mode = ReadCode<DpMode>(reader, "dp_mode");
  }
  if (reader.Has("require_secagg")) {
    rule.require_secagg = reader.Bool("require_secagg");
  }
}

void ReadLimit(JsonReader& reader, Rule& rule) {
  rule.rounds = TryNumber<std::uint64_t>(reader, "rounds", 0);
  rule.runs_per_day = TryNumber<std::uint64_t>(reader, "runs_per_day", 0);
  rule.update_bytes = TryNumber<std::uint64_t>(reader, "update_bytes", 0);
  rule.released_numbers_per_record = TryDecimal(reader, "released_numbers_per_record", 0, 1e12);
  rule.metrics = TryNumber<std::uint64_t>(reader, "metrics", 0);
  rule.params_per_record = TryDecimal(reader, "params_per_record", 0, 1e12);
}

TransferGround ReadGround(const Json& json, JsonReader& parent) {
  JsonReader reader(json, parent.where() + ".transfers[]");
  TransferGround ground;
  StatusOr<Area> to = Area::Parse(reader.String("to"));
  reader.Merge(to.status());
  if (to.ok()) {
    ground.to = *std::move(to);
  }
  ground.mechanism = ReadCode<Mechanism>(reader, "mechanism");
  if (reader.Has("valid_until")) {
    ground.valid_until = ReadTime(reader, "valid_until");
  }
  ground.importer = reader.TryString("importer").value_or("");
  ground.line = ReadLine(reader);
  parent.Merge(reader.Finish());
  return ground;
}

void ReadPart(JsonReader& parent, std::string_view key, Rule& rule,
              void (*read)(JsonReader&, Rule&)) {
  if (const Json* json = parent.TryObject(key)) {
    JsonReader reader(*json, parent.where() + "." + std::string(key));
    read(reader, rule);
    parent.Merge(reader.Finish());
  }
}

}  // namespace

WallTime ReadTime(JsonReader& reader, std::string_view key) {
  const StatusOr<WallTime> time = ParseTime(reader.String(key));
  reader.Merge(time.status());
  return time.ok() ? *time : WallTime{};
}

std::uint32_t ReadLine(JsonReader& reader) {
  return static_cast<std::uint32_t>(reader.Int("line", 0, 10'000'000));
}

Json RuleJson(const Rule& rule) {
  JsonObject json = {{"id", rule.id}, {"line", rule.line}};
  if (rule.dataset) {
    json.emplace("dataset", rule.dataset->text());
  }
  AddAllow(rule, json);
  AddDeny(rule, json);
  AddNumbers(rule, json);
  if (!rule.transfers.empty()) {
    JsonArray grounds;
    for (const TransferGround& ground : rule.transfers) {
      grounds.push_back(GroundJson(ground));
    }
    json.emplace("transfers", std::move(grounds));
  }
  return json;
}

StatusOr<Rule> RuleFromJson(const Json& json) {
  JsonReader reader(json, "statement.rules[]");
  Rule rule;
  rule.id = reader.String("id");
  rule.line = ReadLine(reader);
  if (const std::optional<std::string> name = reader.TryString("dataset")) {
    StatusOr<DatasetAlias> alias = DatasetAlias::Parse(*name);
    reader.Merge(alias.status());
    if (alias.ok()) {
      rule.dataset = *std::move(alias);
    }
  }
  ReadPart(reader, "allow", rule, ReadAllow);
  ReadPart(reader, "deny", rule, ReadDeny);
  ReadPart(reader, "privacy", rule, ReadPrivacy);
  ReadPart(reader, "limit", rule, ReadLimit);
  if (reader.Has("transfers")) {
    for (const Json& item : reader.Array("transfers")) {
      rule.transfers.push_back(ReadGround(item, reader));
    }
  }
  RETURN_IF_ERROR(reader.Finish());
  return rule;
}

}  // namespace domicile::policy
