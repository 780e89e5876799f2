// One row of a table as the schema of a job wants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/schema.h"
#include "models/text/vocabulary.h"
#include "site_agent/datasets/internal/job_column.h"
#include "site_agent/datasets/table.h"

namespace domicile::site_agent::internal {

struct TypedRow {
  std::vector<double> inputs;
  std::vector<std::uint8_t> missing;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint32_t> tokens;
  std::uint32_t length = 0;
  std::uint32_t label = 0;
  double target = 0;
  std::vector<bool> missing_columns;  // by input column: feature, picture or text
  bool is_incomplete = false;         // some column of the job is missing
  std::vector<std::string> faults;    // local lines
};

// Borrows table, schema and vocabulary. Immutable once made.
class RowTyper {
 public:
  // Finds the columns that the schema names. `vocabulary` is needed for a text and may be null
  // otherwise. Lines about columns that are not there go to `faults`; a typer with such is not to
  // be used.
  RowTyper(const Table& table, const contracts::SchemaContract& schema,
           const models::Vocabulary* vocabulary, bool show_values,
           std::vector<std::string>& faults);

  TypedRow Type(std::size_t row) const;

 private:
  // Whether the cell is missing.
  bool TypeNumber(std::size_t row, const contracts::Feature& feature, const JobColumn& column,
                  TypedRow& typed) const;
  bool TypeCategory(std::size_t row, const contracts::Feature& feature, const JobColumn& column,
                    TypedRow& typed) const;
  bool TypePicture(std::size_t row, TypedRow& typed) const;
  bool TypeText(std::size_t row, TypedRow& typed) const;
  void TypeLabel(std::size_t row, TypedRow& typed) const;

  // A number in the job's unit, and what was recorded; empty and noted where there is none.
  struct Number {
    double recorded = 0;
    double value = 0;
  };
  std::optional<Number> ReadNumber(std::size_t row, const JobColumn& column, bool zero_is_missing,
                                   TypedRow& typed) const;
  // A missing `what` ends a row that is kept.
  void NoteMissing(std::size_t row, const JobColumn& column, std::string_view what,
                   TypedRow& typed) const;
  // "FILE:4: column 3 `crp`: what". A cell is shown only where the site's operator asked for it.
  void Note(std::size_t row, const JobColumn& column, std::string_view what, TypedRow& typed) const;

  const Table& table_;
  const contracts::SchemaContract& schema_;
  const models::Vocabulary* vocabulary_;
  bool show_values_;
  std::vector<JobColumn> columns_;  // one a feature, or the picture's or text's
  std::vector<JobColumn> label_;    // one
};

}  // namespace domicile::site_agent::internal
