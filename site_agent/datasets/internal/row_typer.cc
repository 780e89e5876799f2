#include "site_agent/datasets/internal/row_typer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "models/text/basic_text.h"
#include "models/text/wordpiece.h"
#include "site_agent/datasets/picture.h"

namespace domicile::site_agent::internal {

using contracts::Feature;
using contracts::FeatureKind;
using contracts::Label;
using contracts::RowsWithMissing;

namespace {

// What jobs call the column of a picture, and that of a text.
constexpr std::string_view kImage = "image";
constexpr std::string_view kText = "text";

}  // namespace

RowTyper::RowTyper(const Table& table, const contracts::SchemaContract& schema,
                   const models::Vocabulary* vocabulary, bool show_values,
                   std::vector<std::string>& faults)
    : table_(table), schema_(schema), vocabulary_(vocabulary), show_values_(show_values) {
  const auto find = [&](std::string_view name, std::vector<JobColumn>& into) {
    const StatusOr<JobColumn> column = JobColumn::Find(table, name);
    if (column.ok()) {
      into.push_back(*column);
    } else {
      faults.emplace_back(Message(column.status()));
    }
  };
  for (const Feature& feature : schema.features) {
    find(feature.column, columns_);
  }
  if (schema.image) {
    find(kImage, columns_);
  }
  if (schema.text) {
    find(kText, columns_);
  }
  find(schema.label.column, label_);
}

TypedRow RowTyper::Type(std::size_t row) const {
  TypedRow typed;
  for (std::size_t i = 0; i < schema_.features.size(); ++i) {
    const Feature& feature = schema_.features[i];
    typed.missing_columns.push_back(feature.kind == FeatureKind::kNumber
                                        ? TypeNumber(row, feature, columns_[i], typed)
                                        : TypeCategory(row, feature, columns_[i], typed));
  }
  if (schema_.image) {
    typed.missing_columns.push_back(TypePicture(row, typed));
  }
  if (schema_.text) {
    typed.missing_columns.push_back(TypeText(row, typed));
  }
  typed.is_incomplete = std::any_of(typed.missing_columns.begin(), typed.missing_columns.end(),
                                    [](bool is_missing) { return is_missing; });
  TypeLabel(row, typed);
  return typed;
}

bool RowTyper::TypeNumber(std::size_t row, const Feature& feature, const JobColumn& column,
                          TypedRow& typed) const {
  bool is_missing = column.IsMissing(row);
  double value = 0;
  if (!is_missing) {
    const std::optional<Number> number = ReadNumber(row, column, feature.zero_is_missing, typed);
    is_missing = number && feature.zero_is_missing && number->recorded == 0;
    value = number && !is_missing ? number->value : 0;
  }
  typed.inputs.push_back(value);
  typed.missing.push_back(is_missing ? 1 : 0);
  return is_missing;
}

bool RowTyper::TypeCategory(std::size_t row, const Feature& feature, const JobColumn& column,
                            TypedRow& typed) const {
  const bool is_missing = column.IsMissing(row);
  const Reading<std::string_view> code =
      is_missing ? Reading<std::string_view>{} : column.Code(row);
  if (!is_missing && !code.value) {
    Note(row, column, code.wrong, typed);
  }
  for (const std::string& listed : feature.codes) {
    typed.inputs.push_back(code.value == listed ? 1 : 0);
    typed.missing.push_back(0);
  }
  return is_missing;
}

bool RowTyper::TypePicture(std::size_t row, TypedRow& typed) const {
  const JobColumn& column = columns_.front();
  if (column.IsMissing(row)) {
    NoteMissing(row, column, "picture", typed);
    return true;
  }
  const StatusOr<Picture> picture = DecodePicture(AsBytes(column.Cell(row)));
  if (!picture.ok()) {
    Note(row, column, Message(picture.status()), typed);
    return false;
  }
  const contracts::ImageInput& image = *schema_.image;
  StatusOr<std::vector<std::uint8_t>> pixels =
      FitPicture(*picture, image.channels, image.height, image.width);
  if (pixels.ok()) {
    typed.pixels = *std::move(pixels);
  } else {
    Note(row, column, Message(pixels.status()), typed);
  }
  return false;
}

bool RowTyper::TypeText(std::size_t row, TypedRow& typed) const {
  const JobColumn& column = columns_.front();
  if (column.IsMissing(row)) {
    NoteMissing(row, column, "text", typed);
    return true;
  }
  const std::string_view text = column.Cell(row);
  if (!models::IsUtf8(text)) {
    Note(row, column, "not UTF-8", typed);
    return false;
  }
  typed.tokens = models::EncodeText(*vocabulary_, text, schema_.text->length).ids;
  typed.length = static_cast<std::uint32_t>(typed.tokens.size());
  typed.tokens.resize(schema_.text->length, vocabulary_->pad());
  return false;
}

void RowTyper::TypeLabel(std::size_t row, TypedRow& typed) const {
  const Label& label = schema_.label;
  const JobColumn& column = label_.front();
  if (column.IsMissing(row)) {
    typed.is_incomplete = true;
    NoteMissing(row, column, "label", typed);
    return;
  }
  if (label.positive_above || label.number) {
    if (const std::optional<Number> number = ReadNumber(row, column, false, typed)) {
      typed.target = number->value;
      typed.label = label.positive_above && number->value > *label.positive_above ? 1 : 0;
    }
    return;
  }
  const Reading<std::string_view> code = column.Code(row);
  if (!code.value) {
    Note(row, column, code.wrong, typed);
    return;
  }
  const auto found = std::find(label.classes.begin(), label.classes.end(), *code.value);
  if (found == label.classes.end()) {
    Note(row, column, "label not declared by the job", typed);
    return;
  }
  typed.label = static_cast<std::uint32_t>(found - label.classes.begin());
}

std::optional<RowTyper::Number> RowTyper::ReadNumber(std::size_t row, const JobColumn& column,
                                                     bool zero_is_missing, TypedRow& typed) const {
  const Reading<double> recorded = column.RecordedNumber(row);
  if (!recorded.value) {
    Note(row, column, recorded.wrong, typed);
    return std::nullopt;
  }
  // "0 means not measured" comes before the range, which such a 0 need not keep to.
  if (zero_is_missing && *recorded.value == 0) {
    return Number{};
  }
  if (const Status status = column.CheckRange(*recorded.value); !status.ok()) {
    Note(row, column, Message(status), typed);
  }
  const double value = column.InJobUnit(*recorded.value);
  if (!std::isfinite(value)) {
    Note(row, column, "too large for a number in the unit of the job", typed);
    return std::nullopt;
  }
  return Number{*recorded.value, value};
}

void RowTyper::NoteMissing(std::size_t row, const JobColumn& column, std::string_view what,
                           TypedRow& typed) const {
  if (table_.description.rows_with_missing == RowsWithMissing::kKeep) {
    Note(row, column,
         "the " + std::string(what) + " is missing; set rows_with_missing to drop such rows",
         typed);
  }
}

void RowTyper::Note(std::size_t row, const JobColumn& column, std::string_view what,
                    TypedRow& typed) const {
  typed.faults.push_back(column.Place(row) + ": " + std::string(what) +
                         (show_values_ ? ": `" + Visible(column.Cell(row)) + "`" : std::string()));
}

}  // namespace domicile::site_agent::internal
