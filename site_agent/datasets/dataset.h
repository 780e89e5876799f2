// A table as a plan wants it: model inputs, labels, and the split into training and test rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "contracts/dataset.h"
#include "contracts/schema.h"
#include "site_agent/datasets/fault.h"
#include "site_agent/datasets/table.h"

namespace domicile::site_agent {

// Rows in file order, row-major. A table's inputs are as recorded, before any normalisation, in
// float64: sums over them must be exact to far below what float32 holds. Which lists are filled is
// the schema's choice: features, one picture or one text a row; classes or numbers as labels.
struct Rows {
  std::size_t num_inputs = 0;
  std::vector<double> inputs;          // [rows, inputs]; 0 where missing
  std::vector<std::uint8_t> missing;   // [rows, inputs]; 1: not recorded. Inputs of a category are
                                       // never missing: a missing category is all zeros
  std::vector<std::uint8_t> pixels;    // [rows, channels, height, width] of the schema
  std::vector<std::uint32_t> tokens;   // [rows, length] of the schema, padded with [PAD]
  std::vector<std::uint32_t> lengths;  // [rows], tokens that are not padding; at least 2
  std::vector<std::uint32_t> labels;   // [rows], class numbers of the schema
  std::vector<double> targets;         // [rows], where the label is a number: as recorded, in the
                                       // job's unit, before the schema's offset and scale

  std::size_t NumRows() const { return labels.empty() ? targets.size() : labels.size(); }
};

// read = used + dropped, always.
struct RowCounts {
  std::uint64_t read = 0;
  std::uint64_t used = 0;
  std::uint64_t dropped = 0;  // a column of the job is missing, where the site drops such rows
};

struct LoadedDataset {
  DatasetAlias alias;
  std::vector<std::string> input_names;  // as SchemaContract::InputNames()
  std::size_t num_classes = 0;
  Rows training;
  Rows test;  // row i of the file (from 0), where i % n == n - 1
  RowCounts counts;
  std::vector<std::uint64_t> missing_counts;  // one a feature, or the picture's or text's, over
                                              // the rows read
  std::vector<std::string> notices;           // local lines
};

// Types the columns that the schema names, in its words (units, codes); those of a picture and of
// a text are called `image` and `text`. Refuses (kDatasetInvalid, rows_refused = rows with at
// least one fault) a column that is not there (listing those found, invisible bytes shown), a cell
// that is not a number in the declared form, a number outside the declared range, a code that the
// description does not list, a picture that cannot be decoded, a label that the schema does not
// declare; a label, picture or text that is missing in a row that is kept; a vocabulary that is not
// here. All rows are looked at before it refuses; the local lines name the first 20 faults.
Outcome<LoadedDataset> BuildDataset(const Table& table, const contracts::SchemaContract& schema,
                                    const ReadOptions& options = {});

// ReadTable, then BuildDataset.
Outcome<LoadedDataset> LoadDataset(const contracts::DatasetDescription& description,
                                   const contracts::SchemaContract& schema,
                                   const ReadOptions& options = {});

}  // namespace domicile::site_agent
