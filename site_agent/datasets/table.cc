#include "site_agent/datasets/table.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "crypto/sha256.h"
#include "site_agent/datasets/csv.h"

namespace domicile::site_agent {
namespace {

constexpr std::size_t kMaxLocalLines = 20;
constexpr std::uint64_t kMaxDescriptionBytes = 1 << 20;
constexpr std::string_view kContentDomain = "domicile table 1\n";
constexpr std::string_view kRecordDomain = "domicile record 1\n";

void AppendField(Bytes& out, std::string_view text) {
  AppendU64(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

// A record as the digests see it: every cell with its length before it.
void AppendRecord(Bytes& out, const RawRecords& records, std::size_t row) {
  for (std::size_t column = 0; column < records.Columns().size(); ++column) {
    AppendField(out, records.Cell(row, column));
  }
}

Digest ContentDigest(const RawRecords& records) {
  crypto::Sha256Hasher hasher;
  Bytes buffer = ToBytes(kContentDomain);
  AppendU64(buffer, records.Columns().size());
  for (const std::string& name : records.Columns()) {
    AppendField(buffer, name);
  }
  for (std::size_t row = 0; row < records.NumRows(); ++row) {
    AppendRecord(buffer, records, row);
    hasher.Update(buffer);
    buffer.clear();
  }
  hasher.Update(buffer);
  return hasher.Finish();
}

std::string ListColumns(std::span<const std::string> columns) {
  std::string list;
  for (const std::string& name : columns) {
    list += (list.empty() ? "`" : ", `") + Visible(name) + "`";
  }
  return list;
}

}  // namespace

// Fills a RawRecords, file by file. Only this class writes into one.
class TableReader {
 public:
  TableReader(const contracts::DatasetDescription& description, const ReadOptions& options)
      : description_(description), options_(options) {}

  Outcome<Table> Read() {
    for (const std::string& file : description_.files) {
      if (const Status status = ReadFile(file); !status.ok()) {
        return Refuse({std::string(Message(status))}, 0);
      }
    }
    if (const Status status = CheckDescribedColumns(); !status.ok()) {
      return Refuse({std::string(Message(status))}, 0);
    }
    SetMissingTokens();
    if (std::optional<Fault> fault = CheckUniqueKey()) {
      return *std::move(fault);
    }
    NoteOddities();
    const Digest content = ContentDigest(records_);
    return Table{description_, std::move(records_), content, std::move(notices_)};
  }

 private:
  Fault Refuse(std::vector<std::string> lines, std::uint64_t rows) const {
    return {{policy::Reason::kDatasetInvalid, description_.alias, rows}, std::move(lines)};
  }

  Status ReadFile(const std::string& file) {
    ASSIGN_OR_RETURN(CsvReader::Source source, FileSource(file));
    CsvReader reader(std::move(source), file, description_.delimiter);
    std::vector<std::string> cells;
    ASSIGN_OR_RETURN(const bool has_header, reader.Next(cells));
    if (!has_header) {
      return Error(StatusCode::kInvalidArgument,
                   file + ": the file is empty; its first line must name the columns");
    }
    RETURN_IF_ERROR(TakeHeader(file, cells));
    records_.files_.push_back(file);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_record, reader.Next(cells));
      if (!has_record) {
        return OkStatus();
      }
      records_.rows_.push_back({static_cast<std::uint32_t>(records_.files_.size() - 1),
                                reader.Line(), records_.ends_.size()});
      for (const std::string& cell : cells) {
        records_.text_ += cell;
        records_.ends_.push_back(records_.text_.size());
      }
    }
  }

  Status TakeHeader(const std::string& file, const std::vector<std::string>& cells) {
    if (!records_.files_.empty()) {
      if (cells != records_.columns_) {
        return Error(StatusCode::kInvalidArgument, file + ":1: the columns are not those of " +
                                                       records_.files_.front() + ": found " +
                                                       ListColumns(cells) + ", wanted " +
                                                       ListColumns(records_.columns_));
      }
      return OkStatus();
    }
    std::set<std::string_view> seen;
    for (const std::string& name : cells) {
      if (name.empty()) {
        return Error(StatusCode::kInvalidArgument, file + ":1: a column has no name");
      }
      if (!seen.insert(name).second) {
        return Error(StatusCode::kInvalidArgument,
                     file + ":1: two columns are named `" + Visible(name) + "`");
      }
    }
    records_.columns_ = cells;
    return OkStatus();
  }

  // Every column that the description speaks of must be there.
  Status CheckDescribedColumns() const {
    std::vector<std::string> wanted;
    for (const contracts::ColumnDescription& column : description_.columns) {
      wanted.push_back(column.name);
    }
    for (const auto& name : {description_.unique_key, description_.group_id}) {
      if (name) {
        wanted.push_back(*name);
      }
    }
    for (const std::string& name : wanted) {
      if (!records_.FindColumn(name)) {
        return Error(StatusCode::kInvalidArgument,
                     description_.files.front() + ": no column `" + Visible(name) +
                         "`, which the dataset description names; found " +
                         ListColumns(records_.columns_));
      }
    }
    return OkStatus();
  }

  void SetMissingTokens() {
    records_.missing_.assign(records_.columns_.size(), description_.missing);
    for (const contracts::ColumnDescription& column : description_.columns) {
      if (column.missing) {
        records_.missing_[*records_.FindColumn(column.name)] = *column.missing;
      }
    }
  }

  std::optional<Fault> CheckUniqueKey() const {
    if (!description_.unique_key) {
      return std::nullopt;
    }
    const std::size_t column = *records_.FindColumn(*description_.unique_key);
    const std::string where =
        "column " + std::to_string(column + 1) + " `" + Visible(*description_.unique_key) + "`";
    std::unordered_map<std::string_view, std::size_t> first_rows;
    std::vector<std::string> lines;
    std::uint64_t refused = 0;
    for (std::size_t row = 0; row < records_.NumRows(); ++row) {
      const std::string_view key = records_.Cell(row, column);
      std::string line;
      if (records_.IsMissing(row, column)) {
        line = records_.Place(row) + ": " + where + ": the unique key is missing";
      } else if (const auto [at, is_new] = first_rows.emplace(key, row); !is_new) {
        line = records_.Place(row) + ": " + where + ": the same key as " +
               records_.Place(at->second) + ", and it is declared unique_key" +
               (options_.show_values ? ": `" + Visible(key) + "`" : "");
      } else {
        continue;
      }
      ++refused;
      if (lines.size() < kMaxLocalLines) {
        lines.push_back(std::move(line));
      }
    }
    if (refused == 0) {
      return std::nullopt;
    }
    return Refuse(std::move(lines), refused);
  }

  void NoteOddities() {
    if (records_.NumRows() == 0) {
      notices_.push_back(description_.files.front() + ": no records below the header");
      return;
    }
    if (description_.unique_key || description_.group_id) {
      return;
    }
    std::set<std::string_view> distinct;
    for (std::size_t row = 0; row < records_.NumRows(); ++row) {
      distinct.insert(records_.Cell(row, 0));
    }
    if (distinct.size() < records_.NumRows()) {
      notices_.push_back("column 1 `" + Visible(records_.columns_.front()) + "` has " +
                         std::to_string(distinct.size()) + " distinct values in " +
                         std::to_string(records_.NumRows()) +
                         " rows; every row counts, since no unique_key is declared");
    }
  }

  const contracts::DatasetDescription& description_;
  ReadOptions options_;
  RawRecords records_;
  std::vector<std::string> notices_;
};

std::optional<std::size_t> RawRecords::FindColumn(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - columns_.begin());
}

std::string_view RawRecords::Cell(std::size_t row, std::size_t column) const {
  DOMICILE_CHECK(row < rows_.size() && column < columns_.size());
  const std::uint64_t cell = rows_[row].first_cell + column;
  const std::uint64_t begin = cell == 0 ? 0 : ends_[cell - 1];
  return std::string_view(text_).substr(begin, ends_[cell] - begin);
}

bool RawRecords::IsMissing(std::size_t row, std::size_t column) const {
  const std::string_view cell = Cell(row, column);
  const std::vector<std::string>& tokens = missing_[column];
  return cell.empty() || std::find(tokens.begin(), tokens.end(), cell) != tokens.end();
}

std::string RawRecords::Place(std::size_t row) const {
  return files_[rows_[row].file] + ":" + std::to_string(rows_[row].line);
}

Outcome<Table> ReadTable(const contracts::DatasetDescription& description,
                         const ReadOptions& options) {
  DOMICILE_CHECK(!description.files.empty());
  return TableReader(description, options).Read();
}

Outcome<Table> ReadTable(const std::string& description_file, const ReadOptions& options) {
  const auto refuse = [](const Status& status) {
    return Fault({policy::Reason::kDatasetInvalid, {}, 0}, {std::string(Message(status))});
  };
  const StatusOr<std::string> text = ReadFile(description_file, kMaxDescriptionBytes);
  if (!text.ok()) {
    return refuse(text.status());
  }
  const StatusOr<contracts::DatasetDescription> description =
      contracts::ParseDatasetDescription(*text, description_file);
  if (!description.ok()) {
    return refuse(description.status());
  }
  return ReadTable(*description, options);
}

Digest Commitment(const Table& table, ByteSpan salt) {
  return crypto::HmacSha256(salt, table.content.bytes);
}

std::vector<Digest> RecordDigests(const Table& table, ByteSpan salt) {
  std::vector<Digest> digests;
  digests.reserve(table.records.NumRows());
  Bytes record;
  for (std::size_t row = 0; row < table.records.NumRows(); ++row) {
    record = ToBytes(kRecordDomain);
    AppendRecord(record, table.records, row);
    digests.push_back(crypto::HmacSha256(salt, record));
  }
  return digests;
}

std::uint64_t CountDifferingRecords(std::span<const Digest> a, std::span<const Digest> b) {
  std::map<Digest, std::int64_t> balance;
  for (const Digest& digest : a) {
    ++balance[digest];
  }
  for (const Digest& digest : b) {
    --balance[digest];
  }
  std::uint64_t only_a = 0;
  std::uint64_t only_b = 0;
  for (const auto& [digest, count] : balance) {
    (count > 0 ? only_a : only_b) += static_cast<std::uint64_t>(count > 0 ? count : -count);
  }
  return std::max(only_a, only_b);
}

}  // namespace domicile::site_agent
