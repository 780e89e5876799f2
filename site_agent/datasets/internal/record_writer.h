// How a source of a dataset fills its table: files, columns, then cell by cell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "site_agent/datasets/table.h"

namespace domicile::site_agent::internal {

// At most so many local lines about one thing; the operator mends those first.
inline constexpr std::size_t kMaxLocalLines = 20;

// Only this class writes into a RawRecords. One thread at a time.
class RecordWriter {
 public:
  // The records that follow are from `file`. Their places are `file`, `unit` and their number:
  // "a.csv:3", "b.sqlite record 3".
  void BeginFile(const std::string& file, std::string_view unit);

  // The columns of the file. `place` is what errors call where they are named. Errors:
  // kInvalidArgument: one without a name, two of one name, others than those of earlier files.
  Status SetColumns(const std::string& place, std::span<const std::string> columns);

  // A record, then as many cells as there are columns.
  void BeginRecord(std::uint64_t number);
  void AddCell(std::string_view cell);

  // The record that was begun cannot be used: the dataset is refused in the end, with these lines.
  void NoteFault(std::string line);
  void NoteNotice(std::string line);

  std::span<const std::string> Columns() const { return records_.columns_; }
  std::uint64_t NumFaults() const { return num_faults_; }
  std::vector<std::string> TakeFaults() { return std::move(faults_); }
  std::vector<std::string> TakeNotices();

  // The table. `description` says which cells are missing; every column it names must be there.
  // Errors: kInvalidArgument.
  StatusOr<RawRecords> Finish(const contracts::DatasetDescription& description);

 private:
  RawRecords records_;
  std::uint64_t num_faults_ = 0;
  std::vector<std::string> faults_;
  std::uint64_t num_notices_ = 0;
  std::vector<std::string> notices_;
};

// "`age`, `sex`", bytes that do not show made visible.
std::string ListColumns(std::span<const std::string> columns);

// What errors about the dataset as a whole call it: its first file, or its folder.
const std::string& NameOf(const contracts::DatasetDescription& description);

}  // namespace domicile::site_agent::internal
