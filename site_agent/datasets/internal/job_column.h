// A column of a job, found in the table of a site and read in the words of the job.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "site_agent/datasets/table.h"

namespace domicile::site_agent::internal {

// What a cell is to the job, or what is wrong with it.
template <typename T>
struct Reading {
  std::optional<T> value;
  std::string wrong;  // empty where there is a value
};

// Borrows the table. Immutable.
class JobColumn {
 public:
  // Errors: kInvalidArgument, a local line: no such column, or one that jobs know by another name.
  static StatusOr<JobColumn> Find(const Table& table, std::string_view name);

  bool IsMissing(std::size_t row) const { return table_->records.IsMissing(row, index_); }
  std::string_view Cell(std::size_t row) const { return table_->records.Cell(row, index_); }

  // The number as recorded, or that of its code; and whether it keeps to the range of the
  // description.
  Reading<double> RecordedNumber(std::size_t row) const;
  Status CheckRange(double recorded) const;
  // The same in the job's unit; not finite only if it overflows.
  double InJobUnit(double recorded) const;

  // The code or class of jobs that the cell stands for.
  Reading<std::string_view> Code(std::size_t row) const;

  // "FILE:4: column 3 `crp`".
  std::string Place(std::size_t row) const;

 private:
  JobColumn(const Table& table, std::size_t index, const contracts::ColumnDescription* description)
      : table_(&table), index_(index), description_(description) {}

  const Table* table_;
  std::size_t index_;
  const contracts::ColumnDescription* description_;  // may be null
};

}  // namespace domicile::site_agent::internal
