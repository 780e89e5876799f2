#include <string>
#include <utility>
#include <vector>

#include "site_agent/datasets/csv.h"
#include "site_agent/datasets/internal/sources.h"

namespace domicile::site_agent::internal {

Status ReadCsvFile(const std::string& file, char delimiter, RecordWriter& out) {
  ASSIGN_OR_RETURN(CsvReader::Source source, FileSource(file));
  CsvReader reader(std::move(source), file, delimiter);
  std::vector<std::string> cells;
  ASSIGN_OR_RETURN(const bool has_header, reader.Next(cells));
  if (!has_header) {
    return Error(StatusCode::kInvalidArgument,
                 file + ": the file is empty; its first line must name the columns");
  }
  RETURN_IF_ERROR(out.SetColumns(file + ":1", cells));
  out.BeginFile(file, ":");
  while (true) {
    ASSIGN_OR_RETURN(const bool has_record, reader.Next(cells));
    if (!has_record) {
      return OkStatus();
    }
    out.BeginRecord(reader.Line());
    for (const std::string& cell : cells) {
      out.AddCell(cell);
    }
  }
}

Status ReadCsv(const contracts::DatasetDescription& description, RecordWriter& out) {
  for (const std::string& file : description.files) {
    RETURN_IF_ERROR(ReadCsvFile(file, description.delimiter, out));
  }
  return OkStatus();
}

}  // namespace domicile::site_agent::internal
