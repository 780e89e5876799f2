// A site's data in memory as one table, whatever its source: the cells of its files, checked for
// form, with the digests that name its version. A text is a cell, and so is a picture. Typing comes
// later (dataset.h), when a plan says which columns it wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "contracts/dataset.h"
#include "site_agent/datasets/fault.h"

namespace domicile::models {
class Vocabulary;
}  // namespace domicile::models

namespace domicile::site_agent {

namespace internal {
class RecordWriter;
}  // namespace internal

// The records of a dataset as text. Has no serialiser, and `<<` does not compile: a record is read
// cell by cell by the code beside it and by nothing else. Move-only. Immutable once made.
class RawRecords {
 public:
  std::size_t NumRows() const { return rows_.size(); }
  std::span<const std::string> Columns() const { return columns_; }
  // Empty if there is no such column.
  std::optional<std::size_t> FindColumn(std::string_view name) const;

  std::string_view Cell(std::size_t row, std::size_t column) const;
  // Whether the cell is one of the tokens that mean "not recorded" in its column. Quoting makes no
  // difference: "NA" and NA are the same cell.
  bool IsMissing(std::size_t row, std::size_t column) const;
  // "FILE:LINE" of a record, or "FILE record NUMBER" where there are no lines.
  std::string Place(std::size_t row) const;

  RawRecords(RawRecords&&) noexcept = default;
  RawRecords& operator=(RawRecords&&) noexcept = default;
  RawRecords(const RawRecords&) = delete;
  RawRecords& operator=(const RawRecords&) = delete;
  ~RawRecords() = default;

 private:
  friend class internal::RecordWriter;
  RawRecords() = default;

  struct Row {
    std::uint32_t file = 0;
    std::uint64_t number = 0;  // of a line or record of the file
  };
  std::vector<std::string> files_;  // with what stands between their name and a number
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> missing_;  // tokens, one list a column
  std::vector<Row> rows_;
  std::string text_;                 // all cells, one after another
  std::vector<std::uint64_t> ends_;  // of each cell in text_, [rows, columns]
};

std::ostream& operator<<(std::ostream& out, const RawRecords& records) = delete;

struct ReadOptions {
  bool show_values = false;  // whether local lines may quote a cell
  // The vocabulary file of that SHA-256, which must outlive the reading; null if it is not here.
  std::function<const models::Vocabulary*(const Digest&)> vocabularies{};
};

// A table that was read. Immutable.
struct Table {
  contracts::DatasetDescription description;
  RawRecords records;
  // SHA-256 over the column names and the cells as parsed, so that byte order marks, line ends,
  // quoting and the cutting into files make no difference (docs/formats/dataset.md). Guessable from
  // the data: only keyed forms of it may leave the trainer.
  Digest content;
  std::vector<std::string> notices;  // local lines: what an operator may want to know
};

// Errors: those of reading a file of at most 1 MiB and of ParseDatasetDescription.
StatusOr<contracts::DatasetDescription> ReadDescription(const std::string& file);

// Reads and checks all files of a description: all of one header, no column twice, every column the
// description names is there, unique keys are unique, every picture can be decoded. A fault
// (kDatasetInvalid) names file and line.
Outcome<Table> ReadTable(const contracts::DatasetDescription& description,
                         const ReadOptions& options = {});

// As above, from a description file; a fault also for one that does not parse.
Outcome<Table> ReadTable(const std::string& description_file, const ReadOptions& options = {});

// What the site commits to for a dataset version: HMAC-SHA-256(salt, content).
Digest Commitment(const Table& table, ByteSpan salt);

// One digest a record, in file order: HMAC-SHA-256(salt, record). Equal records have equal digests.
std::vector<Digest> RecordDigests(const Table& table, ByteSpan salt);

// How many records lie between two versions: the records of either that the other lacks, counted
// with multiplicity, the greater of both sides. A changed record counts once.
std::uint64_t CountDifferingRecords(std::span<const Digest> a, std::span<const Digest> b);

}  // namespace domicile::site_agent
