#include <string>
#include <utility>
#include <vector>

#include "base/sqlite.h"
#include "site_agent/datasets/internal/number_text.h"
#include "site_agent/datasets/internal/sources.h"

namespace domicile::site_agent::internal {
namespace {

StatusOr<std::string> CellOf(const Statement& row, int column, char decimal_mark) {
  switch (row.TypeOf(column)) {
    case Statement::Type::kNull:
      return std::string();
    case Statement::Type::kInteger:
      return std::to_string(row.Int(column));
    case Statement::Type::kReal: {
      std::optional<std::string> cell = NumberCell(row.Double(column), decimal_mark);
      return cell ? StatusOr<std::string>(*std::move(cell))
                  : Error(StatusCode::kInvalidArgument, "an infinite number");
    }
    case Statement::Type::kText:
      return row.Text(column);
    case Statement::Type::kBlob: {
      const Bytes blob = row.Blob(column);
      return std::string(AsText(blob));
    }
  }
  return std::string();
}

}  // namespace

Status ReadSqlite(const contracts::DatasetDescription& description, RecordWriter& out) {
  const std::string& file = description.files.front();
  ASSIGN_OR_RETURN(Database database, Database::Open(file, Database::Mode::kFrozen));
  ASSIGN_OR_RETURN(Statement row, database.PrepareQuery(description.query));
  std::vector<std::string> columns;
  for (int i = 0; i < row.NumColumns(); ++i) {
    columns.push_back(row.ColumnName(i));
  }
  RETURN_IF_ERROR(out.SetColumns(file + ": the query", columns));
  out.BeginFile(file, " row ");
  for (std::uint64_t number = 1;; ++number) {
    ASSIGN_OR_RETURN(const bool has_row, row.Step());
    if (!has_row) {
      return OkStatus();
    }
    out.BeginRecord(number);
    for (int i = 0; i < row.NumColumns(); ++i) {
      const StatusOr<std::string> cell = CellOf(row, i, description.decimal_mark);
      if (!cell.ok()) {
        out.NoteFault(file + " row " + std::to_string(number) + ": column " +
                      std::to_string(i + 1) + ": " + std::string(Message(cell.status())));
      }
      out.AddCell(cell.ok() ? *cell : std::string());
    }
  }
}

}  // namespace domicile::site_agent::internal
