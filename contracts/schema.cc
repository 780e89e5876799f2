// The schema contract: how it is read from job files and plans, and what makes one whole.
#include "contracts/schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "contracts/internal/fault.h"
#include "contracts/internal/fields.h"
#include "contracts/internal/plan_words.h"

namespace domicile::contracts {

namespace internal {

namespace {

constexpr std::size_t kLongestColumn = 64;
constexpr std::size_t kMaxFeatures = 10'000;
constexpr std::size_t kMaxCodes = 1'000;

// Controls, line separators, and marks that change the direction of text or do not show at all: a
// person approves what these names say.
bool IsInvisible(std::string_view text, std::size_t at) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  const unsigned second = byte(at + 1);
  const unsigned third = byte(at + 2);
  if (first < 0x20 || first == 0x7F || (first == 0xC2 && second >= 0x80 && second <= 0x9F)) {
    return true;  // C0, DEL, C1
  }
  return (first == 0xE2 && second == 0x80 &&
          ((third >= 0x8B && third <= 0x8F) || (third >= 0xA8 && third <= 0xAE))) ||
         (first == 0xE2 && second == 0x81 && third >= 0xA0 && third <= 0xAF) ||
         (first == 0xEF && second == 0xBB && third == 0xBF);
}

constexpr std::string_view kColumnRule =
    "must be 1 to 64 bytes without control characters, `=` or outer blanks";

std::optional<Fault> FindFeatureFault(const Feature& feature, std::size_t index,
                                      std::set<std::string_view>& columns) {
  const auto fault = [index](std::string key, std::string message) {
    return Fault{"feature", index, std::move(key), std::move(message)};
  };
  if (!IsColumnText(feature.column)) {
    return fault("column", std::string(kColumnRule));
  }
  if (!columns.insert(feature.column).second) {
    return fault("column", "names a column that another feature has; list each column once");
  }
  if (feature.kind == FeatureKind::kNone) {
    return fault("kind", "must be one of `number`, `category`");
  }
  if (feature.kind == FeatureKind::kNumber) {
    return feature.codes.empty()
               ? std::nullopt
               : std::optional(fault("codes", "belong to a category; a number has none"));
  }
  if (feature.zero_is_missing) {
    return fault("zero_is_missing", "belongs to a number; leave it out of a category");
  }
  if (feature.codes.empty() || feature.codes.size() > kMaxCodes) {
    return fault("codes", "must be a list of 1 to " + std::to_string(kMaxCodes) + " codes");
  }
  std::set<std::string_view> codes;
  for (const std::string& code : feature.codes) {
    if (!IsColumnText(code)) {
      return fault("codes", "each " + std::string(kColumnRule));
    }
    if (!codes.insert(code).second) {
      return fault("codes", "has the code `" + Visible(code) + "` twice");
    }
  }
  return std::nullopt;
}

std::optional<Fault> FindLabelFault(const Label& label, const std::set<std::string_view>& columns) {
  const auto fault = [](std::string key, std::string message) {
    return Fault{"label", std::nullopt, std::move(key), std::move(message)};
  };
  if (!IsColumnText(label.column)) {
    return fault("column", std::string(kColumnRule));
  }
  if (columns.contains(label.column)) {
    return fault("column", "is also a feature; a model must not see what it is to tell");
  }
  if (label.positive_above.has_value()) {
    return label.classes.empty()
               ? std::nullopt
               : std::optional(fault("classes", "cannot stand beside `positive_above`; keep one"));
  }
  if (label.classes.size() < 2 || label.classes.size() > kMaxCodes) {
    return fault("classes", "must be 2 to " + std::to_string(kMaxCodes) +
                                " classes in order (or give `positive_above`)");
  }
  std::set<std::string_view> classes;
  for (const std::string& name : label.classes) {
    if (!IsColumnText(name)) {
      return fault("classes", "each " + std::string(kColumnRule));
    }
    if (!classes.insert(name).second) {
      return fault("classes", "has the class `" + Visible(name) + "` twice");
    }
  }
  return std::nullopt;
}

}  // namespace

bool IsColumnText(std::string_view text) {
  if (text.empty() || text.size() > kLongestColumn || text.front() == ' ' || text.back() == ' ') {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '=' || IsInvisible(text, i)) {
      return false;
    }
  }
  return true;
}

std::string Describe(const Fault& fault) {
  std::string path = fault.table;
  if (fault.element) {
    path += "[" + std::to_string(*fault.element) + "]";
  }
  path += (path.empty() || fault.key.empty() ? "" : ".") + fault.key;
  return "`" + path + "` " + fault.message;
}

void Report(TomlTable root, const Fault& fault) {
  const std::size_t dot = fault.table.find('.');
  std::optional<TomlTable> table = root;
  std::string_view last = fault.table;
  if (dot != std::string::npos) {
    table = root.TryTable(last.substr(0, dot));
    last.remove_prefix(dot + 1);
  }
  if (table && fault.element) {
    std::vector<TomlTable> elements = table->Tables(last);
    table =
        *fault.element < elements.size() ? std::optional(elements[*fault.element]) : std::nullopt;
  } else if (table && !last.empty()) {
    table = table->TryTable(last);
  }
  if (table) {
    table->Fail(fault.key, fault.message);
  } else {
    root.Fail(fault.table, fault.key + " " + fault.message);
  }
}

std::optional<Fault> FindSchemaFault(const SchemaContract& schema) {
  if (schema.features.empty() || schema.features.size() > kMaxFeatures) {
    return Fault{"", std::nullopt, "feature",
                 "must be 1 to " + std::to_string(kMaxFeatures) + " tables [[feature]]"};
  }
  std::set<std::string_view> columns;
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    if (std::optional<Fault> fault = FindFeatureFault(schema.features[i], i, columns)) {
      return fault;
    }
  }
  return FindLabelFault(schema.label, columns);
}

}  // namespace internal

namespace {

using internal::Fault;
using internal::JsonFields;
using internal::TomlFields;

// `positive_above` is a decimal like any other; this is far beyond any code or measure.
constexpr double kLargestThreshold = 1e300;

template <typename Fields>
Feature ReadFeature(Fields fields) {
  Feature feature;
  feature.column = fields.String("column");
  feature.kind = internal::ReadWord<FeatureKind>(fields, "kind", internal::kFeatureWords);
  // Each kind asks for its own keys only, so that the other's are unknown.
  switch (feature.kind) {
    case FeatureKind::kNumber:
      feature.zero_is_missing = fields.TryBool("zero_is_missing").value_or(false);
      break;
    case FeatureKind::kCategory:
      feature.codes = fields.Strings("codes");
      break;
    case FeatureKind::kNone:
      break;
  }
  return feature;
}

template <typename Fields>
Label ReadLabel(Fields fields) {
  Label label;
  label.column = fields.String("column");
  label.positive_above = fields.TryDouble("positive_above", -kLargestThreshold, kLargestThreshold);
  if (!label.positive_above.has_value() || fields.Has("classes")) {
    label.classes = fields.Strings("classes");
  }
  return label;
}

}  // namespace

std::vector<std::string> SchemaContract::InputNames() const {
  std::vector<std::string> names;
  for (const Feature& feature : features) {
    if (feature.kind == FeatureKind::kNumber) {
      names.push_back(feature.column);
      continue;
    }
    for (const std::string& code : feature.codes) {
      names.push_back(feature.column + "=" + code);
    }
  }
  return names;
}

SchemaContract ReadSchema(TomlTable table) {
  SchemaContract schema;
  for (const TomlTable& feature : table.Tables("feature")) {
    schema.features.push_back(ReadFeature(TomlFields(feature)));
  }
  schema.label = ReadLabel(TomlFields(table.Table("label")));
  if (const std::optional<Fault> fault = internal::FindSchemaFault(schema)) {
    internal::Report(table, *fault);
  }
  return schema;
}

Json ToJson(const SchemaContract& schema) {
  JsonArray features;
  for (const Feature& feature : schema.features) {
    Json item;
    item.Set("column", feature.column);
    item.Set("kind", internal::WordOf(internal::kFeatureWords, feature.kind));
    if (feature.kind == FeatureKind::kCategory) {
      item.Set("codes", JsonArray(feature.codes.begin(), feature.codes.end()));
    } else {
      item.Set("zero_is_missing", feature.zero_is_missing);
    }
    features.push_back(std::move(item));
  }
  Json label;
  label.Set("column", schema.label.column);
  if (schema.label.positive_above.has_value()) {
    label.Set("positive_above", PrintDouble(*schema.label.positive_above + 0.0));
  } else {
    label.Set("classes", JsonArray(schema.label.classes.begin(), schema.label.classes.end()));
  }
  Json json;
  json.Set("features", std::move(features));
  json.Set("label", std::move(label));
  return json;
}

StatusOr<SchemaContract> SchemaFromJson(const Json& json) {
  SchemaContract schema;
  JsonReader reader(json, "schema");
  for (const Json& item : reader.Array("features")) {
    JsonReader one(item, "schema.features[" + std::to_string(schema.features.size()) + "]");
    schema.features.push_back(ReadFeature(JsonFields(one)));
    RETURN_IF_ERROR(one.Finish());
  }
  JsonReader label(reader.Object("label"), "schema.label");
  RETURN_IF_ERROR(reader.Finish());
  schema.label = ReadLabel(JsonFields(label));
  RETURN_IF_ERROR(label.Finish());
  if (const std::optional<Fault> fault = internal::FindSchemaFault(schema)) {
    return Error(StatusCode::kInvalidArgument, "schema: " + internal::Describe(*fault));
  }
  return schema;
}

}  // namespace domicile::contracts
