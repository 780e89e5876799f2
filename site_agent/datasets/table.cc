#include "site_agent/datasets/table.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "crypto/sha256.h"
#include "site_agent/datasets/internal/record_writer.h"
#include "site_agent/datasets/internal/sources.h"

namespace domicile::site_agent {
namespace {

using contracts::DataSource;
using internal::RecordWriter;

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

Status ReadSource(const contracts::DatasetDescription& description, RecordWriter& out) {
  switch (description.source) {
    case DataSource::kCsv:
      return internal::ReadCsv(description, out);
    case DataSource::kIdx:
      return internal::ReadIdx(description, out);
    case DataSource::kImages:
      return internal::ReadImages(description, out);
    case DataSource::kSqlite:
      return internal::ReadSqlite(description, out);
    case DataSource::kArrays:
      return internal::ReadArrays(description, out);
    case DataSource::kPostgresql:
      return internal::ReadSnapshot(description, out);
  }
  return Error(StatusCode::kInternal, "a source of no kind");
}

}  // namespace

// One reading of a table.
class TableReader {
 public:
  TableReader(const contracts::DatasetDescription& description, const ReadOptions& options)
      : description_(description), options_(options) {}

  Outcome<Table> Read() {
    RecordWriter writer;
    if (const Status status = ReadSource(description_, writer); !status.ok()) {
      return Refuse({std::string(Message(status))}, 0);
    }
    if (writer.NumFaults() > 0) {
      return Refuse(writer.TakeFaults(), writer.NumFaults());
    }
    notices_ = writer.TakeNotices();
    StatusOr<RawRecords> records = writer.Finish(description_);
    if (!records.ok()) {
      return Refuse({std::string(Message(records.status()))}, 0);
    }
    if (std::optional<Fault> fault = CheckUniqueKey(*records)) {
      return *std::move(fault);
    }
    NoteOddities(*records);
    const Digest content = ContentDigest(*records);
    return Table{description_, *std::move(records), content, std::move(notices_)};
  }

 private:
  Fault Refuse(std::vector<std::string> lines, std::uint64_t rows) const {
    if (rows > lines.size()) {
      lines.push_back("rows refused altogether: " + std::to_string(rows));
    }
    return {{policy::Reason::kDatasetInvalid, description_.alias, rows}, std::move(lines)};
  }

  std::optional<Fault> CheckUniqueKey(const RawRecords& records) const {
    if (!description_.unique_key) {
      return std::nullopt;
    }
    const std::size_t column = *records.FindColumn(*description_.unique_key);
    const std::string where =
        "column " + std::to_string(column + 1) + " `" + Visible(*description_.unique_key) + "`";
    std::unordered_map<std::string_view, std::size_t> first_rows;
    std::vector<std::string> lines;
    std::uint64_t refused = 0;
    for (std::size_t row = 0; row < records.NumRows(); ++row) {
      const std::string_view key = records.Cell(row, column);
      std::string line;
      if (records.IsMissing(row, column)) {
        line = records.Place(row) + ": " + where + ": the unique key is missing";
      } else if (const auto [at, is_new] = first_rows.emplace(key, row); !is_new) {
        line = records.Place(row) + ": " + where + ": the same key as " +
               records.Place(at->second) + ", and it is declared unique_key" +
               (options_.show_values ? ": `" + Visible(key) + "`" : "");
      } else {
        continue;
      }
      ++refused;
      if (lines.size() < internal::kMaxLocalLines) {
        lines.push_back(std::move(line));
      }
    }
    if (refused == 0) {
      return std::nullopt;
    }
    return Refuse(std::move(lines), refused);
  }

  void NoteOddities(const RawRecords& records) {
    if (records.NumRows() == 0) {
      notices_.push_back(internal::NameOf(description_) + ": no records below the header");
      return;
    }
    if (description_.unique_key || description_.group_id) {
      return;
    }
    std::set<std::string_view> distinct;
    for (std::size_t row = 0; row < records.NumRows(); ++row) {
      distinct.insert(records.Cell(row, 0));
    }
    if (distinct.size() < records.NumRows()) {
      notices_.push_back("column 1 `" + Visible(records.Columns().front()) + "` has " +
                         std::to_string(distinct.size()) + " distinct values in " +
                         std::to_string(records.NumRows()) +
                         " rows; every row counts, since no unique_key is declared");
    }
  }

  const contracts::DatasetDescription& description_;
  ReadOptions options_;
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
  const std::uint64_t cell = row * columns_.size() + column;
  const std::uint64_t begin = cell == 0 ? 0 : ends_[cell - 1];
  return std::string_view(text_).substr(begin, ends_[cell] - begin);
}

bool RawRecords::IsMissing(std::size_t row, std::size_t column) const {
  const std::string_view cell = Cell(row, column);
  const std::vector<std::string>& tokens = missing_[column];
  return cell.empty() || std::find(tokens.begin(), tokens.end(), cell) != tokens.end();
}

std::string RawRecords::Place(std::size_t row) const {
  return files_[rows_[row].file] + std::to_string(rows_[row].number);
}

Outcome<Table> ReadTable(const contracts::DatasetDescription& description,
                         const ReadOptions& options) {
  return TableReader(description, options).Read();
}

StatusOr<contracts::DatasetDescription> ReadDescription(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxDescriptionBytes));
  return contracts::ParseDatasetDescription(text, file);
}

Outcome<Table> ReadTable(const std::string& description_file, const ReadOptions& options) {
  const StatusOr<contracts::DatasetDescription> description = ReadDescription(description_file);
  if (!description.ok()) {
    return Fault({policy::Reason::kDatasetInvalid, {}, 0},
                 {std::string(Message(description.status()))});
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
