#include "policy/language/statement_rule.h"

#include "base/text.h"
#include "policy/language/duration.h"
#include "policy/language/ranges.h"

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
  template <typename E>
  void Codes(std::string_view key, const std::optional<std::set<E>>& values) {
    if (values) {
      Set(key, CodesJson(*values));
    }
  }
  void Areas(std::string_view key, const std::optional<std::set<Area>>& areas) {
    if (areas) {
      Set(key, TextsJson(*areas));
    }
  }
  void Names(std::string_view key, const std::optional<std::set<std::string>>& names) {
    if (names) {
      Set(key, JsonArray(names->begin(), names->end()));
    }
  }
  void Truth(std::string_view key, const std::optional<bool>& value) {
    if (value) {
      Set(key, Json(*value));
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

void AddAllow(const Rule& rule, JsonObject& json) {
  Writer allow;
  allow.Areas("aggregator_locations", rule.aggregator_locations);
  allow.Areas("aggregator_control", rule.aggregator_control);
  allow.Names("recipients", rule.recipients);
  allow.Codes("update_kinds", rule.update_kinds);
  allow.Codes("purposes", rule.purposes);
  allow.OneCode("aggregator_view", rule.aggregator_view);
  allow.Areas("transit", rule.transit);
  allow.Names("models", rule.models);
  allow.Names("trainers", rule.trainers);
  allow.Names("contributors", rule.contributors);
  allow.Truth("derogations", rule.derogations);
  allow.Into("allow", json);
}

// A set of which empty and absent are the same.
template <typename T>
std::optional<std::set<T>> UnlessEmpty(const std::set<T>& values) {
  return values.empty() ? std::nullopt : std::optional<std::set<T>>(values);
}

void AddDeny(const Rule& rule, JsonObject& json) {
  Writer deny;
  deny.Areas("locations", UnlessEmpty(rule.deny_locations));
  deny.Areas("control", UnlessEmpty(rule.deny_control));
  deny.Names("recipients", UnlessEmpty(rule.deny_recipients));
  deny.Codes("update_kinds", UnlessEmpty(rule.deny_update_kinds));
  deny.Codes("outputs", rule.deny_outputs);
  deny.Codes("purposes", rule.deny_purposes);
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
  privacy.Truth("require_secagg", rule.require_secagg);
  privacy.Decimal("secagg_threshold", rule.secagg_threshold);
  privacy.OneCode("dp_unit", rule.dp_unit);
  privacy.OneCode("sampling", rule.sampling);
  privacy.Into("privacy", json);
  Writer limit;
  limit.Number("rounds", rule.rounds);
  limit.Number("runs_per_day", rule.runs_per_day);
  limit.Number("update_bytes", rule.update_bytes);
  limit.Decimal("released_numbers_per_record", rule.released_numbers_per_record);
  limit.Number("metrics", rule.metrics);
  limit.Decimal("params_per_record", rule.params_per_record);
  limit.Decimal("epsilon_total", rule.epsilon_total);
  limit.Decimal("epsilon_per_run", rule.epsilon_per_run);
  limit.Decimal("delta", rule.delta);
  if (rule.budget_window) {
    limit.Set("budget_window", rule.budget_window == kLifeOfDataset
                                   ? std::string(kLife)
                                   : PrintDuration(*rule.budget_window));
  }
  limit.Number("export_subjects_per_year", rule.export_subjects_per_year);
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

std::optional<std::set<std::string>> TryNames(JsonReader& reader, std::string_view key) {
  if (!reader.Has(key)) {
    return std::nullopt;
  }
  const std::vector<std::string> names = reader.Strings(key);
  return std::set<std::string>{names.begin(), names.end()};
}

std::optional<bool> TryTruth(JsonReader& reader, std::string_view key) {
  return reader.Has(key) ? std::optional<bool>(reader.Bool(key)) : std::nullopt;
}

void ReadAllow(JsonReader& reader, Rule& rule) {
  rule.aggregator_locations = TryTexts<Area>(reader, "aggregator_locations");
  rule.aggregator_control = TryTexts<Area>(reader, "aggregator_control");
  rule.recipients = TryNames(reader, "recipients");
  rule.update_kinds = TryCodes<UpdateKind>(reader, "update_kinds");
  rule.purposes = TryCodes<Purpose>(reader, "purposes");
  rule.aggregator_view = TryCode<View>(reader, "aggregator_view");
  rule.transit = TryTexts<Area>(reader, "transit");
  rule.models = TryNames(reader, "models");
  rule.trainers = TryNames(reader, "trainers");
  rule.contributors = TryNames(reader, "contributors");
  rule.derogations = TryTruth(reader, "derogations");
}

void ReadDeny(JsonReader& reader, Rule& rule) {
  rule.deny_locations = TryTexts<Area>(reader, "locations").value_or(std::set<Area>{});
  rule.deny_control = TryTexts<Area>(reader, "control").value_or(std::set<Area>{});
  rule.deny_recipients = TryNames(reader, "recipients").value_or(std::set<std::string>{});
  rule.deny_update_kinds =
      TryCodes<UpdateKind>(reader, "update_kinds").value_or(std::set<UpdateKind>{});
  rule.deny_outputs = TryCodes<Output>(reader, "outputs");
  rule.deny_purposes = TryCodes<Purpose>(reader, "purposes");
}

void ReadPrivacy(JsonReader& reader, Rule& rule) {
  rule.min_contributors = TryNumber<std::uint32_t>(reader, "min_contributors", 3);
  rule.min_cohort = TryNumber<std::uint64_t>(reader, "min_cohort", 1);
  rule.min_batch = TryNumber<std::uint32_t>(reader, "min_batch", 1);
  rule.min_local_steps = TryNumber<std::uint32_t>(reader, "min_local_steps", 1);
  rule.clip_l2 = TryDecimal(reader, "clip_l2", 1e-9, 1e9);
  rule.dp_mode = TryCode<DpMode>(reader, "dp_mode");
  rule.require_secagg = TryTruth(reader, "require_secagg");
  rule.secagg_threshold = TryDecimal(reader, "secagg_threshold", kLeastShare, kMostShare);
  rule.dp_unit = TryCode<DpUnit>(reader, "dp_unit");
  rule.sampling = TryCode<Sampling>(reader, "sampling");
}

void ReadLimit(JsonReader& reader, Rule& rule) {
  rule.rounds = TryNumber<std::uint64_t>(reader, "rounds", 0);
  rule.runs_per_day = TryNumber<std::uint64_t>(reader, "runs_per_day", 0);
  rule.update_bytes = TryNumber<std::uint64_t>(reader, "update_bytes", 0);
  rule.released_numbers_per_record = TryDecimal(reader, "released_numbers_per_record", 0, 1e12);
  rule.metrics = TryNumber<std::uint64_t>(reader, "metrics", 0);
  rule.params_per_record = TryDecimal(reader, "params_per_record", 0, 1e12);
  rule.epsilon_total = TryDecimal(reader, "epsilon_total", 0, kMostEpsilon);
  rule.epsilon_per_run = TryDecimal(reader, "epsilon_per_run", 0, kMostEpsilon);
  rule.delta = TryDecimal(reader, "delta", 0, kMostDelta);
  rule.budget_window = TryDuration(reader, "budget_window", true);
  rule.export_subjects_per_year = TryNumber<std::uint64_t>(reader, "export_subjects_per_year", 0);
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

std::optional<Duration> TryDuration(JsonReader& reader, std::string_view key, bool or_life) {
  const std::optional<std::string> text = reader.TryString(key);
  if (!text) {
    return std::nullopt;
  }
  if (or_life && *text == kLife) {
    return kLifeOfDataset;
  }
  const StatusOr<Duration> value = ParseDuration(*text);
  reader.Merge(value.status());
  return value.ok() ? std::optional<Duration>(*value) : std::nullopt;
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
  if (rule.evidence) {
    json.emplace("evidence", std::string(Code(*rule.evidence)));
  }
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
  rule.evidence = TryCode<LocationEvidence>(reader, "evidence");
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
