// Readers of the sources of a dataset (docs/formats/dataset.md): each opens what the description
// names and writes its records. Errors are local lines: they name file and place, never a cell.
#pragma once

#include "base/status.h"
#include "contracts/dataset.h"
#include "site_agent/datasets/internal/record_writer.h"

namespace domicile::site_agent::internal {

Status ReadCsv(const contracts::DatasetDescription& description, RecordWriter& out);

Status ReadSqlite(const contracts::DatasetDescription& description, RecordWriter& out);
Status ReadSnapshot(const contracts::DatasetDescription& description, RecordWriter& out);
Status ReadIdx(const contracts::DatasetDescription& description, RecordWriter& out);
Status ReadImages(const contracts::DatasetDescription& description, RecordWriter& out);
Status ReadArrays(const contracts::DatasetDescription& description, RecordWriter& out);

// One table of the form that the description tells.
Status ReadCsvFile(const std::string& file, char delimiter, RecordWriter& out);

}  // namespace domicile::site_agent::internal
