// What a job expects of a table, and how a site's file holds it.
//
// The *schema contract* is part of the plan: features in order, their kinds, and the label with its
// classes in order, so that every site builds the same inputs and the same output layer whatever
// its own rows hold (docs/formats/dataset.md). The *dataset description* is the site's own file:
// where the table is, its delimiter and decimal mark, missing tokens, keys, ranges; it never leaves
// the site.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/status.h"
#include "base/toml.h"

namespace domicile::contracts {

// ---- the schema contract (in the plan) ----

enum class FeatureKind : std::uint8_t {
  kNone = 0,
  kNumber = 1,  // one input
  kCategory =
      2,  // one input per listed code: 1 if the cell is that code, else 0 (also when missing)
};

// One column of the table as model inputs, in the order of the plan.
struct Feature {
  std::string column;
  FeatureKind kind = FeatureKind::kNone;
  bool zero_is_missing = false;    // a number 0 means "not measured"
  std::vector<std::string> codes;  // of a category: which codes become inputs; others are the base
  friend bool operator==(const Feature&, const Feature&) = default;
};

// How the label column becomes a class number.
struct Label {
  std::string column;
  // Either: the class is 1 if the number in the column is greater than this, else 0 ...
  std::optional<double> positive_above;
  // ... or: the cell is one of these classes, in this order.
  std::vector<std::string> classes;
  std::size_t NumClasses() const { return positive_above ? 2 : classes.size(); }
  friend bool operator==(const Label&, const Label&) = default;
};

struct SchemaContract {
  std::vector<Feature> features;
  Label label;
  // Names of the model inputs, in order: "age", "cp=1", "cp=2", ...
  std::vector<std::string> InputNames() const;
  friend bool operator==(const SchemaContract&, const SchemaContract&) = default;
};

SchemaContract ReadSchema(TomlTable table);  // errors stick to the document
Json ToJson(const SchemaContract& schema);
StatusOr<SchemaContract> SchemaFromJson(const Json& json);

// ---- the dataset description (at the site) ----

struct ColumnDescription {
  std::string name;
  std::optional<std::vector<std::string>> missing;  // instead of the table's missing tokens
  std::optional<double> min;                        // a value outside is an error of the data
  std::optional<double> max;
  friend bool operator==(const ColumnDescription&, const ColumnDescription&) = default;
};

enum class RowsWithMissing : std::uint8_t { kKeep = 0, kDrop = 1 };

struct DatasetDescription {
  DatasetAlias alias;              // the only name that leaves the site
  std::string version;             // of the frozen snapshot, named by the operator; stays here
  std::vector<std::string> files;  // CSV tables of one layout, resolved beside the description
  char delimiter = ',';
  char decimal_mark = '.';
  std::optional<char> grouping;             // thousands mark; none unless declared
  std::vector<std::string> missing = {""};  // cells that mean "not recorded"
  std::optional<std::string> unique_key;    // a column whose values must differ
  std::optional<std::string> group_id;      // a column that groups rows; not unique
  RowsWithMissing rows_with_missing = RowsWithMissing::kKeep;
  std::uint32_t test_every = 0;  // every n-th row, counted in file order, is held out; 0: none
  std::vector<ColumnDescription> columns;
};

StatusOr<DatasetDescription> ParseDatasetDescription(std::string_view toml, std::string_view file);

}  // namespace domicile::contracts
