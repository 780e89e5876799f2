#include "site_agent/datasets/internal/record_writer.h"

#include <set>
#include <utility>

#include "base/text.h"

namespace domicile::site_agent::internal {

void RecordWriter::BeginFile(const std::string& file, std::string_view unit) {
  records_.files_.push_back(file + std::string(unit));
}

Status RecordWriter::SetColumns(const std::string& place, std::span<const std::string> columns) {
  if (!records_.columns_.empty()) {
    if (!std::equal(columns.begin(), columns.end(), records_.columns_.begin(),
                    records_.columns_.end())) {
      return Error(StatusCode::kInvalidArgument,
                   place + ": the columns are not those of the files before: found " +
                       ListColumns(columns) + ", wanted " + ListColumns(records_.columns_));
    }
    return OkStatus();
  }
  std::set<std::string_view> seen;
  for (const std::string& name : columns) {
    if (name.empty()) {
      return Error(StatusCode::kInvalidArgument, place + ": a column has no name");
    }
    if (!seen.insert(name).second) {
      return Error(StatusCode::kInvalidArgument,
                   place + ": two columns are named `" + Visible(name) + "`");
    }
  }
  records_.columns_.assign(columns.begin(), columns.end());
  return OkStatus();
}

void RecordWriter::BeginRecord(std::uint64_t number) {
  DOMICILE_CHECK(records_.ends_.size() == records_.rows_.size() * records_.columns_.size());
  records_.rows_.push_back({static_cast<std::uint32_t>(records_.files_.size() - 1), number});
}

void RecordWriter::AddCell(std::string_view cell) {
  records_.text_ += cell;
  records_.ends_.push_back(records_.text_.size());
}

void RecordWriter::NoteFault(std::string line) {
  ++num_faults_;
  if (faults_.size() < kMaxLocalLines) {
    faults_.push_back(std::move(line));
  }
}

void RecordWriter::NoteNotice(std::string line) {
  ++num_notices_;
  if (notices_.size() < kMaxLocalLines) {
    notices_.push_back(std::move(line));
  }
}

std::vector<std::string> RecordWriter::TakeNotices() {
  if (num_notices_ > notices_.size()) {
    notices_.push_back("... and " + std::to_string(num_notices_ - notices_.size()) + " more");
  }
  return std::move(notices_);
}

StatusOr<RawRecords> RecordWriter::Finish(const contracts::DatasetDescription& description) {
  DOMICILE_CHECK(records_.ends_.size() == records_.rows_.size() * records_.columns_.size());
  const auto require = [&](const std::string& name) -> Status {
    return records_.FindColumn(name) ? OkStatus()
                                     : Error(StatusCode::kInvalidArgument,
                                             NameOf(description) + ": no column `" + Visible(name) +
                                                 "`, which the dataset description names; found " +
                                                 ListColumns(records_.columns_));
  };
  records_.missing_.assign(records_.columns_.size(), description.missing);
  for (const contracts::ColumnDescription& column : description.columns) {
    RETURN_IF_ERROR(require(column.Local()));
    if (column.missing) {
      records_.missing_[*records_.FindColumn(column.Local())] = *column.missing;
    }
  }
  for (const auto& name : {description.unique_key, description.group_id}) {
    if (name) {
      RETURN_IF_ERROR(require(*name));
    }
  }
  return std::move(records_);
}

std::string ListColumns(std::span<const std::string> columns) {
  std::string list;
  for (const std::string& name : columns) {
    list += (list.empty() ? "`" : ", `") + Visible(name) + "`";
  }
  return list;
}

const std::string& NameOf(const contracts::DatasetDescription& description) {
  return description.files.empty() ? description.folder : description.files.front();
}

}  // namespace domicile::site_agent::internal
