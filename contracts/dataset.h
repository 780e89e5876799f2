// How a site's data lies in its files. The *dataset description* is the site's own: where the table
// is, its delimiter and decimal mark, missing tokens, keys, ranges; it never leaves the site
// (docs/formats/dataset.md). What a job expects of it is the schema contract (schema.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace domicile::contracts {

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
