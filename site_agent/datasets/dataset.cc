#include "site_agent/datasets/dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "site_agent/datasets/csv.h"

namespace domicile::site_agent {
namespace {

using contracts::Feature;
using contracts::FeatureKind;
using contracts::Label;
using contracts::RowsWithMissing;

constexpr std::size_t kMaxLocalLines = 20;

// Where a column of the job is in the table, and the range the site declares for it.
struct Column {
  std::size_t index = 0;
  std::optional<double> min;
  std::optional<double> max;
};

// One typed row, before it is known whether it is used.
struct TypedRow {
  std::vector<double> inputs;
  std::vector<std::uint8_t> missing;
  std::uint32_t label = 0;
  bool is_incomplete = false;  // some column of the job is missing
  bool is_faulty = false;
};

class Builder {
 public:
  Builder(const Table& table, const contracts::SchemaContract& schema, const ReadOptions& options)
      : table_(table), schema_(schema), options_(options) {
    data_.alias = table.description.alias;
    data_.input_names = schema.InputNames();
    data_.num_classes = schema.label.NumClasses();
    data_.missing_counts.assign(schema.features.size(), 0);
    data_.notices = table.notices;
    for (Rows* const rows : {&data_.training, &data_.test}) {
      rows->num_inputs = data_.input_names.size();
    }
  }

  Outcome<LoadedDataset> Build() {
    if (!FindColumns()) {
      return Refuse();
    }
    for (std::size_t row = 0; row < table_.records.NumRows(); ++row) {
      TypedRow typed = Type(row);
      refused_ += typed.is_faulty ? 1 : 0;
      ++data_.counts.read;
      if (typed.is_incomplete && table_.description.rows_with_missing == RowsWithMissing::kDrop) {
        ++data_.counts.dropped;
        continue;
      }
      ++data_.counts.used;
      Keep(row, typed);
    }
    if (refused_ > 0) {
      return Refuse();
    }
    if (data_.counts.dropped > 0) {
      data_.notices.push_back(std::to_string(data_.counts.read) + " rows read, " +
                              std::to_string(data_.counts.dropped) +
                              " dropped for a missing value, " + std::to_string(data_.counts.used) +
                              " used");
    }
    return std::move(data_);
  }

 private:
  bool FindColumns() {
    for (const Feature& feature : schema_.features) {
      columns_.push_back(FindColumn(feature.column));
    }
    label_column_ = FindColumn(schema_.label.column);
    return lines_.empty();
  }

  Column FindColumn(const std::string& name) {
    Column column;
    const std::optional<std::size_t> index = table_.records.FindColumn(name);
    if (!index) {
      std::string found;
      for (const std::string& other : table_.records.Columns()) {
        found += (found.empty() ? "`" : ", `") + Visible(other) + "`";
      }
      lines_.push_back(table_.description.files.front() + ": no column `" + Visible(name) +
                       "`, which the job asks for; found " + found);
      return column;
    }
    column.index = *index;
    for (const contracts::ColumnDescription& description : table_.description.columns) {
      if (description.name == name) {
        column.min = description.min;
        column.max = description.max;
      }
    }
    return column;
  }

  TypedRow Type(std::size_t row) {
    TypedRow typed;
    typed.inputs.reserve(data_.input_names.size());
    typed.missing.reserve(data_.input_names.size());
    for (std::size_t i = 0; i < schema_.features.size(); ++i) {
      const bool is_missing = schema_.features[i].kind == FeatureKind::kNumber
                                  ? TypeNumber(row, i, typed)
                                  : TypeCategory(row, i, typed);
      data_.missing_counts[i] += is_missing ? 1 : 0;
      typed.is_incomplete = typed.is_incomplete || is_missing;
    }
    TypeLabel(row, typed);
    return typed;
  }

  // Both say whether the cell is missing.
  bool TypeNumber(std::size_t row, std::size_t feature, TypedRow& typed) {
    const Column& column = columns_[feature];
    double value = 0;
    bool is_missing = table_.records.IsMissing(row, column.index);
    if (!is_missing) {
      const std::optional<double> number = Number(row, column, typed);
      value = number.value_or(0);
      // "0 means not measured" comes before the range, which such a 0 need not keep to.
      is_missing = number == 0.0 && schema_.features[feature].zero_is_missing;
      if (number && !is_missing) {
        CheckRange(row, column, value, typed);
      }
    }
    typed.inputs.push_back(is_missing ? 0 : value);
    typed.missing.push_back(is_missing ? 1 : 0);
    return is_missing;
  }

  bool TypeCategory(std::size_t row, std::size_t feature, TypedRow& typed) {
    const std::size_t column = columns_[feature].index;
    const bool is_missing = table_.records.IsMissing(row, column);
    const std::string_view cell = table_.records.Cell(row, column);
    for (const std::string& code : schema_.features[feature].codes) {
      typed.inputs.push_back(!is_missing && cell == code ? 1 : 0);
      typed.missing.push_back(0);
    }
    return is_missing;
  }

  void TypeLabel(std::size_t row, TypedRow& typed) {
    const Label& label = schema_.label;
    if (table_.records.IsMissing(row, label_column_.index)) {
      typed.is_incomplete = true;
      if (table_.description.rows_with_missing == RowsWithMissing::kKeep) {
        Note(row, label_column_, "the label is missing; set rows_with_missing to drop such rows",
             typed);
      }
      return;
    }
    if (label.positive_above) {
      if (const std::optional<double> number = Number(row, label_column_, typed)) {
        CheckRange(row, label_column_, *number, typed);
        typed.label = *number > *label.positive_above ? 1 : 0;
      }
      return;
    }
    const std::string_view cell = table_.records.Cell(row, label_column_.index);
    const auto found = std::find(label.classes.begin(), label.classes.end(), cell);
    if (found == label.classes.end()) {
      Note(row, label_column_, "label not declared by the job", typed);
      return;
    }
    typed.label = static_cast<std::uint32_t>(found - label.classes.begin());
  }

  std::optional<double> Number(std::size_t row, const Column& column, TypedRow& typed) {
    const contracts::DatasetDescription& form = table_.description;
    const std::optional<double> number =
        ParseNumber(table_.records.Cell(row, column.index), form.decimal_mark, form.grouping);
    if (!number) {
      Note(row, column,
           std::string("not a number in the declared form (decimal mark `") + form.decimal_mark +
               "`, " +
               (form.grouping ? std::string("grouping `") + *form.grouping + "`"
                              : std::string("no grouping")) +
               ")",
           typed);
    }
    return number;
  }

  void CheckRange(std::size_t row, const Column& column, double value, TypedRow& typed) {
    if ((column.min && value < *column.min) || (column.max && value > *column.max)) {
      Note(row, column, "outside the range declared for the column", typed);
    }
  }

  // "FILE:4: column 3 `crp`: what". A cell is shown only where the site's operator asked for it.
  void Note(std::size_t row, const Column& column, std::string_view what, TypedRow& typed) {
    typed.is_faulty = true;
    if (lines_.size() >= kMaxLocalLines) {
      return;
    }
    lines_.push_back(
        table_.records.Place(row) + ": column " + std::to_string(column.index + 1) + " `" +
        Visible(table_.records.Columns()[column.index]) + "`: " + std::string(what) +
        (options_.show_values ? ": `" + Visible(table_.records.Cell(row, column.index)) + "`"
                              : ""));
  }

  void Keep(std::size_t row, const TypedRow& typed) {
    const std::uint32_t every = table_.description.test_every;
    Rows& rows = every > 0 && row % every == every - 1 ? data_.test : data_.training;
    rows.inputs.insert(rows.inputs.end(), typed.inputs.begin(), typed.inputs.end());
    rows.missing.insert(rows.missing.end(), typed.missing.begin(), typed.missing.end());
    rows.labels.push_back(typed.label);
  }

  Fault Refuse() {
    if (refused_ > lines_.size()) {
      lines_.push_back("rows refused altogether: " + std::to_string(refused_));
    }
    return {{policy::Reason::kDatasetInvalid, data_.alias, refused_}, std::move(lines_)};
  }

  const Table& table_;
  const contracts::SchemaContract& schema_;
  ReadOptions options_;
  std::vector<Column> columns_;  // one a feature
  Column label_column_;
  LoadedDataset data_;
  std::uint64_t refused_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

Outcome<LoadedDataset> BuildDataset(const Table& table, const contracts::SchemaContract& schema,
                                    const ReadOptions& options) {
  return Builder(table, schema, options).Build();
}

Outcome<LoadedDataset> LoadDataset(const contracts::DatasetDescription& description,
                                   const contracts::SchemaContract& schema,
                                   const ReadOptions& options) {
  const Outcome<Table> table = ReadTable(description, options);
  if (!table.ok()) {
    return table.TheFault();
  }
  return BuildDataset(*table, schema, options);
}

}  // namespace domicile::site_agent
