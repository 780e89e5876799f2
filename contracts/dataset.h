// How a site's data lies in its files. The *dataset description* is the site's own: where the table
// is, its form, missing tokens, keys, ranges, and what its columns, units and codes mean in the
// words of jobs; it never leaves the site (docs/formats/dataset.md). What a job expects of it is
// the schema contract (schema.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace domicile::contracts {

struct ColumnDescription {
  std::string name;                                 // what jobs call it
  std::optional<std::vector<std::string>> missing;  // instead of the table's missing tokens
  std::optional<double> min;                        // a value outside, in the unit of the table,
  std::optional<double> max;                        // is an error of the data
  std::string local;  // what the table calls it; empty: the same (see Local())
  // A number of the table, times scale, plus offset, is in the unit of jobs.
  double scale = 1;
  double offset = 0;
  // What the table records, and the code or class of jobs that it means; empty: the same.
  std::vector<std::pair<std::string, std::string>> codes;

  const std::string& Local() const { return local.empty() ? name : local; }
  friend bool operator==(const ColumnDescription&, const ColumnDescription&) = default;
};

// What the files of a dataset are.
enum class DataSource : std::uint8_t {
  kCsv = 0,
  kSqlite = 1,
  kPostgresql = 2,  // a snapshot of it: the trainer has no network
  kIdx = 3,
  kImages = 4,
  kArrays = 5,
};

// What becomes of a picture file that cannot be decoded.
enum class Unreadable : std::uint8_t { kRefuse = 0, kMissing = 1 };

enum class RowsWithMissing : std::uint8_t { kKeep = 0, kDrop = 1 };

struct DatasetDescription {
  DatasetAlias alias;   // the only name that leaves the site
  std::string version;  // of the frozen snapshot, named by the operator; stays here
  DataSource source = DataSource::kCsv;
  std::vector<std::string> files;   // of one layout, resolved beside the description
  std::vector<std::string> labels;  // of kIdx: one beside each of `files`
  std::string folder;               // of kImages: what picture files are in; see PictureFolder
  std::string query;                // of kSqlite and kPostgresql
  std::string service;              // of kPostgresql: a service of libpq; empty: the environment's
  Unreadable unreadable = Unreadable::kRefuse;  // of kImages
  char delimiter = ',';
  char decimal_mark = '.';
  std::optional<char> grouping;             // thousands mark; none unless declared
  std::vector<std::string> missing = {""};  // cells that mean "not recorded"
  std::optional<std::string> unique_key;    // a column whose values must differ
  std::optional<std::string> group_id;      // a column that groups rows; not unique
  RowsWithMissing rows_with_missing = RowsWithMissing::kKeep;
  std::uint32_t test_every = 0;  // every n-th row, counted in file order, is held out; 0: none
  std::vector<ColumnDescription> columns;

  // The description of what jobs call `name`; null if no column of jobs is described by it.
  const ColumnDescription* FindColumn(std::string_view name) const;
  // The description of what the table calls `local`.
  const ColumnDescription* FindLocalColumn(std::string_view local) const;
};

// Errors: kInvalidArgument, "FILE:LINE:COLUMN: ...".
StatusOr<DatasetDescription> ParseDatasetDescription(std::string_view toml, std::string_view file);

// What reading the dataset opens: files, and folders with all that is in them.
std::vector<std::string> DataPaths(const DatasetDescription& description);

// The folder that the picture files of a manifest are in.
std::string PictureFolder(const DatasetDescription& description, std::string_view manifest);

// The file beside a snapshot that holds its digest.
std::string SnapshotDigestFile(std::string_view snapshot);

}  // namespace domicile::contracts
