#include "site_agent/datasets/dataset.h"

#include <optional>
#include <utility>

#include "site_agent/datasets/internal/record_writer.h"
#include "site_agent/datasets/internal/row_typer.h"

namespace domicile::site_agent {
namespace {

using contracts::RowsWithMissing;
using internal::TypedRow;

class Builder {
 public:
  Builder(const Table& table, const contracts::SchemaContract& schema, const ReadOptions& options)
      : table_(table), schema_(schema), options_(options) {
    data_.alias = table.description.alias;
    data_.input_names = schema.InputNames();
    data_.num_classes = schema.label.NumClasses();
    data_.missing_counts.assign(
        schema.features.size() + (schema.image ? 1U : 0U) + (schema.text ? 1U : 0U), 0);
    data_.notices = table.notices;
    for (Rows* const rows : {&data_.training, &data_.test}) {
      rows->num_inputs = data_.input_names.size();
    }
  }

  Outcome<LoadedDataset> Build() {
    const models::Vocabulary* const vocabulary = FindVocabulary();
    const internal::RowTyper typer(table_, schema_, vocabulary, options_.show_values, lines_);
    if (!lines_.empty()) {
      return Refuse();
    }
    for (std::size_t row = 0; row < table_.records.NumRows(); ++row) {
      Count(row, typer.Type(row));
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
  // Null, with a line, if the schema wants one that is not here; null if it wants none.
  const models::Vocabulary* FindVocabulary() {
    if (!schema_.text) {
      return nullptr;
    }
    const models::Vocabulary* const found =
        options_.vocabularies ? options_.vocabularies(schema_.text->vocabulary) : nullptr;
    if (found == nullptr) {
      lines_.push_back(
          internal::NameOf(table_.description) + ": the job needs the vocabulary file of SHA-256 " +
          PrintHex(schema_.text->vocabulary) + ", which is not among those of this site");
    }
    return found;
  }

  void Count(std::size_t row, const TypedRow& typed) {
    refused_ += typed.faults.empty() ? 0 : 1;
    for (const std::string& line : typed.faults) {
      if (lines_.size() < internal::kMaxLocalLines) {
        lines_.push_back(line);
      }
    }
    for (std::size_t i = 0; i < typed.missing_columns.size(); ++i) {
      data_.missing_counts[i] += typed.missing_columns[i] ? 1 : 0;
    }
    ++data_.counts.read;
    if (typed.is_incomplete && table_.description.rows_with_missing == RowsWithMissing::kDrop) {
      ++data_.counts.dropped;
      return;
    }
    ++data_.counts.used;
    if (refused_ == 0) {
      Keep(row, typed);
    }
  }

  void Keep(std::size_t row, const TypedRow& typed) {
    const std::uint32_t every = table_.description.test_every;
    Rows& rows = every > 0 && row % every == every - 1 ? data_.test : data_.training;
    const auto append = [](const auto& from, auto& to) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(typed.inputs, rows.inputs);
    append(typed.missing, rows.missing);
    append(typed.pixels, rows.pixels);
    append(typed.tokens, rows.tokens);
    if (schema_.text) {
      rows.lengths.push_back(typed.length);
    }
    if (schema_.label.number) {
      rows.targets.push_back(typed.target);
    } else {
      rows.labels.push_back(typed.label);
    }
  }

  Fault Refuse() {
    if (refused_ > lines_.size()) {
      lines_.push_back("rows refused altogether: " + std::to_string(refused_));
    }
    return {{policy::Reason::kDatasetInvalid, data_.alias, refused_}, std::move(lines_)};
  }

  const Table& table_;
  const contracts::SchemaContract& schema_;
  const ReadOptions& options_;
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
