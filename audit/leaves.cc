#include "audit/leaves.h"

#include <array>
#include <fstream>
#include <utility>

#include "audit/internal/line_reader.h"
#include "base/file.h"
#include "base/sqlite.h"

namespace domicile::audit {

namespace {

constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};

// The rows of a party's database, in one snapshot.
class DatabaseLeaves final : public LeafReader {
 public:
  static StatusOr<std::unique_ptr<LeafReader>> Open(const std::string& path) {
    ASSIGN_OR_RETURN(Database opened, Database::Open(path, Database::Mode::kReadOnly));
    auto db = std::make_unique<Database>(std::move(opened));
    ASSIGN_OR_RETURN(Statement rows,
                     db->Prepare("SELECT seq, bytes, hash FROM log_leaf ORDER BY seq"));
    return std::make_unique<DatabaseLeaves>(std::move(db), std::move(rows));
  }

  DatabaseLeaves(std::unique_ptr<Database> db, Statement rows)
      : db_(std::move(db)), rows_(std::move(rows)) {}

  StatusOr<std::optional<RawLeaf>> Next() override {
    ASSIGN_OR_RETURN(const bool row, rows_.Step());
    if (!row) {
      return std::optional<RawLeaf>();
    }
    return std::optional<RawLeaf>(RawLeaf{.seq = static_cast<std::uint64_t>(rows_.Int(0)),
                                          .bytes = std::string(AsText(rows_.Blob(1))),
                                          .stored_hash = rows_.Blob(2)});
  }

 private:
  std::unique_ptr<Database> db_;  // outlives its statement: destroyed last
  Statement rows_;
};

class ExportLeaves final : public LeafReader {
 public:
  ExportLeaves(std::string path, std::ifstream file)
      : path_(std::move(path)), file_(std::move(file)), lines_(file_) {}

  StatusOr<std::optional<RawLeaf>> Next() override {
    const internal::Line line = lines_.Next();
    const auto wrong = [&](std::string_view what) {
      return Error(StatusCode::kInvalidArgument, "export `" + path_ + "`, line " +
                                                     std::to_string(line.number + 1) + " " +
                                                     std::string(what));
    };
    switch (line.end) {
      case internal::LineEnd::kEndOfFile:
        return std::optional<RawLeaf>();
      case internal::LineEnd::kTorn:
        return wrong("is torn: it has no line end; verify the log first");
      case internal::LineEnd::kCarriageReturn:
        return wrong("ends in CR LF; an export has LF alone, get it again in binary form");
      case internal::LineEnd::kTooLong:
        return wrong("is longer than an entry can be");
      case internal::LineEnd::kUnreadable:
        return Error(StatusCode::kUnavailable, "export `" + path_ + "` cannot be read further");
      case internal::LineEnd::kWhole:
        break;
    }
    return std::optional<RawLeaf>(
        RawLeaf{.seq = line.number, .bytes = std::string(line.text), .stored_hash = std::nullopt});
  }

 private:
  std::string path_;
  std::ifstream file_;
  internal::LineReader lines_;
};

}  // namespace

StatusOr<LogFileKind> KindOfLogFile(const std::string& path) {
  // Opening through ReadFile's error texts: a folder or a missing file is said in its words.
  std::ifstream file(path, std::ios::binary);
  std::array<char, kSqliteMagic.size()> first{};
  file.read(first.data(), first.size());
  if (file.bad() || (file.fail() && !file.eof())) {
    const auto why = ReadFile(path, 1);
    return why.ok() ? Error(StatusCode::kUnavailable, "cannot read `" + path + "`") : why.status();
  }
  return std::string_view(first.data(), first.size()) == kSqliteMagic ? LogFileKind::kDatabase
                                                                      : LogFileKind::kExport;
}

StatusOr<std::unique_ptr<LeafReader>> LeafReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const LogFileKind kind, KindOfLogFile(path));
  if (kind == LogFileKind::kDatabase) {
    return DatabaseLeaves::Open(path);
  }
  return std::make_unique<ExportLeaves>(path, std::ifstream(path, std::ios::binary));
}

}  // namespace domicile::audit
