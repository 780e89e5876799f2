// The schema contract: how it is read from job files and plans, and what makes one whole.
#include "contracts/schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "contracts/internal/fault.h"
#include "contracts/internal/fields.h"
#include "contracts/internal/plan_check.h"
#include "contracts/internal/plan_words.h"

namespace domicile::contracts {

namespace internal {

namespace {

constexpr std::size_t kLongestColumn = 64;
constexpr std::size_t kMaxFeatures = 10'000;
constexpr std::size_t kMaxCodes = 1'000;
constexpr std::size_t kMaxPixels = std::size_t{1} << 24U;

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

std::optional<Fault> FindImageFault(const ImageInput& image) {
  const auto fault = [](std::string key, std::string message) {
    return Fault{"image", std::nullopt, std::move(key), std::move(message)};
  };
  if (image.channels == 0 || image.height == 0 || image.width == 0 || image.Size() > kMaxPixels) {
    return fault("height", "times `width` times `channels` must be from 1 to 2^24");
  }
  if (image.mean.size() != image.channels) {
    return fault("mean", "must have one number for each channel");
  }
  if (image.deviation.size() != image.channels) {
    return fault("deviation", "must have one number for each channel");
  }
  if (!std::all_of(image.deviation.begin(), image.deviation.end(),
                   [](double deviation) { return deviation > 0; })) {
    return fault("deviation", "must be above 0");
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
  if (label.number.has_value()) {
    if (label.positive_above.has_value() || !label.classes.empty()) {
      return fault("kind", "`number` has no classes; leave out `positive_above` and `classes`");
    }
    return label.number->scale > 0 ? std::nullopt
                                   : std::optional(fault("scale", "must be above 0"));
  }
  if (label.positive_above.has_value()) {
    return label.classes.empty()
               ? std::nullopt
               : std::optional(fault("classes", "cannot stand beside `positive_above`; keep one"));
  }
  if (label.classes.size() < 2 || label.classes.size() > kMaxCodes) {
    return fault("classes",
                 "must be 2 to " + std::to_string(kMaxCodes) +
                     " classes in order (or give `positive_above`, or kind = \"number\")");
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
  const int inputs =
      (schema.features.empty() ? 0 : 1) + (schema.image ? 1 : 0) + (schema.text ? 1 : 0);
  if (inputs != 1) {
    return Fault{"", std::nullopt, "feature",
                 "or `image` or `text` must be there, and only one of the three"};
  }
  if (schema.features.size() > kMaxFeatures) {
    return Fault{"", std::nullopt, "feature",
                 "must be 1 to " + std::to_string(kMaxFeatures) + " tables [[feature]]"};
  }
  if (schema.image) {
    if (std::optional<Fault> fault = FindImageFault(*schema.image)) {
      return fault;
    }
  }
  if (schema.text && schema.text->vocabulary.IsZero()) {
    return Fault{"text", std::nullopt, "vocabulary", std::string(kDigestRule)};
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
constexpr double kLargestLabelScale = 1e12;
constexpr double kLargestPixelConstant = 1e3;

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

// As many constants as channels: all `otherwise` where the job names none.
template <typename Fields>
std::vector<double> ReadChannels(Fields& fields, std::string_view key, std::uint32_t channels,
                                 double low, double otherwise) {
  return fields.Has(key) ? fields.Doubles(key, low, kLargestPixelConstant)
                         : std::vector<double>(channels, otherwise);
}

template <typename Fields>
ImageInput ReadImage(Fields fields) {
  ImageInput image;
  image.channels = static_cast<std::uint32_t>(fields.Int("channels", 1, internal::kMaxChannels));
  image.height = static_cast<std::uint32_t>(fields.Int("height", 1, internal::kMaxSide));
  image.width = static_cast<std::uint32_t>(fields.Int("width", 1, internal::kMaxSide));
  image.mean = ReadChannels(fields, "mean", image.channels, -kLargestPixelConstant, 0);
  image.deviation = ReadChannels(fields, "deviation", image.channels, 0, 1);
  return image;
}

template <typename Fields>
TextInput ReadText(Fields fields) {
  TextInput text;
  text.length = static_cast<std::uint32_t>(fields.Int("length", 2, internal::kMaxTextLength));
  text.vocabulary = internal::ReadDigest(fields, "vocabulary");
  return text;
}

template <typename Fields>
Label ReadLabel(Fields fields) {
  Label label;
  label.column = fields.String("column");
  if (fields.Has("kind")) {
    if (fields.String("kind") != "number") {
      fields.Fail("kind", "must be `number`; a label of classes has none");
    }
    label.number = NumberLabel{
        .offset = fields.TryDouble("offset", -kLargestLabelScale, kLargestLabelScale).value_or(0),
        .scale = fields.TryDouble("scale", 0, kLargestLabelScale).value_or(1)};
    return label;
  }
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

std::size_t SchemaContract::NumInputs() const {
  if (image) {
    return image->Size();
  }
  return text ? text->length : InputNames().size();
}

SchemaContract ReadSchema(TomlTable table) {
  SchemaContract schema;
  for (const TomlTable& feature : table.Tables("feature")) {
    schema.features.push_back(ReadFeature(TomlFields(feature)));
  }
  if (const std::optional<TomlTable> image = table.TryTable("image")) {
    schema.image = ReadImage(TomlFields(*image));
  }
  if (const std::optional<TomlTable> text = table.TryTable("text")) {
    schema.text = ReadText(TomlFields(*text));
  }
  schema.label = ReadLabel(TomlFields(table.Table("label")));
  if (const std::optional<Fault> fault = internal::FindSchemaFault(schema)) {
    internal::Report(table, *fault);
  }
  return schema;
}

namespace {

Json FeaturesJson(const std::vector<Feature>& features) {
  JsonArray list;
  for (const Feature& feature : features) {
    Json item;
    item.Set("column", feature.column);
    item.Set("kind", internal::WordOf(internal::kFeatureWords, feature.kind));
    if (feature.kind == FeatureKind::kCategory) {
      item.Set("codes", JsonArray(feature.codes.begin(), feature.codes.end()));
    } else {
      item.Set("zero_is_missing", feature.zero_is_missing);
    }
    list.push_back(std::move(item));
  }
  return list;
}

Json ImageJson(const ImageInput& image) {
  Json json;
  json.Set("channels", image.channels);
  json.Set("height", image.height);
  json.Set("width", image.width);
  json.Set("mean", internal::Decimals(image.mean));
  json.Set("deviation", internal::Decimals(image.deviation));
  return json;
}

Json TextJson(const TextInput& text) {
  Json json;
  json.Set("length", text.length);
  json.Set("vocabulary", PrintHex(text.vocabulary));
  return json;
}

Json LabelJson(const Label& label) {
  Json json;
  json.Set("column", label.column);
  if (label.number.has_value()) {
    json.Set("kind", "number");
    json.Set("offset", internal::Decimal(label.number->offset));
    json.Set("scale", internal::Decimal(label.number->scale));
  } else if (label.positive_above.has_value()) {
    json.Set("positive_above", internal::Decimal(*label.positive_above));
  } else {
    json.Set("classes", JsonArray(label.classes.begin(), label.classes.end()));
  }
  return json;
}

}  // namespace

Json ToJson(const SchemaContract& schema) {
  Json json;
  if (schema.image) {
    json.Set("image", ImageJson(*schema.image));
  } else if (schema.text) {
    json.Set("text", TextJson(*schema.text));
  } else {
    json.Set("features", FeaturesJson(schema.features));
  }
  json.Set("label", LabelJson(schema.label));
  return json;
}

StatusOr<SchemaContract> SchemaFromJson(const Json& json) {
  SchemaContract schema;
  JsonReader reader(json, "schema");
  const Json* const image = reader.TryObject("image");
  const Json* const text = reader.TryObject("text");
  if (image != nullptr) {
    JsonReader one(*image, "schema.image");
    schema.image = ReadImage(JsonFields(one));
    RETURN_IF_ERROR(one.Finish());
  }
  if (text != nullptr) {
    JsonReader one(*text, "schema.text");
    schema.text = ReadText(JsonFields(one));
    RETURN_IF_ERROR(one.Finish());
  }
  if (image == nullptr && text == nullptr) {
    for (const Json& item : reader.Array("features")) {
      JsonReader one(item, "schema.features[" + std::to_string(schema.features.size()) + "]");
      schema.features.push_back(ReadFeature(JsonFields(one)));
      RETURN_IF_ERROR(one.Finish());
    }
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
