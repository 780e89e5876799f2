#include "audit/export.h"

#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/sqlite.h"

namespace domicile::audit {

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20U;
constexpr std::uint64_t kProgressEvery = 4096;

// A file that appears whole or not at all, written piece by piece: WriteFileDurably for what does
// not fit in memory. The temporary is removed unless Finish() has returned OK. One thread at a
// time.
class GrowingFile {
 public:
  static StatusOr<GrowingFile> Create(const std::string& path) {
    const std::string temporary = path + ".tmp";
    FileHandle file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.IsOpen()) {
      return ErrnoError(errno, "`" + temporary + "`");
    }
    return GrowingFile(path, std::move(file));
  }

  GrowingFile(GrowingFile&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        file_(std::move(other.file_)),
        buffer_(std::move(other.buffer_)) {}
  GrowingFile& operator=(GrowingFile&&) = delete;
  ~GrowingFile() {
    if (!path_.empty()) {
      ::unlink((path_ + ".tmp").c_str());
    }
  }

  Status Write(std::string_view text) {
    buffer_ += text;
    return buffer_.size() < kBuffer ? OkStatus() : Flush();
  }

  Status Finish() {
    RETURN_IF_ERROR(Flush());
    if (::fsync(file_.descriptor()) != 0 ||
        ::rename((path_ + ".tmp").c_str(), path_.c_str()) != 0) {
      return ErrnoError(errno, "`" + path_ + "`");
    }
    const std::size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    path_.clear();
    const FileHandle opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.IsOpen() || ::fsync(opened.descriptor()) != 0) {
      return ErrnoError(errno, "`" + folder + "`");
    }
    return OkStatus();
  }

 private:
  GrowingFile(std::string path, FileHandle file) : path_(std::move(path)), file_(std::move(file)) {}

  Status Flush() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      const ssize_t written = ::write(file_.descriptor(), rest.data(), rest.size());
      if (written < 0 && errno != EINTR) {
        return ErrnoError(errno, "`" + path_ + "`");
      }
      rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    buffer_.clear();
    return OkStatus();
  }

  std::string path_;  // empty once it is in place or moved from
  FileHandle file_;
  std::string buffer_;
};

struct StoredHead {
  std::uint64_t size = 0;
  std::string note;
};

StatusOr<StoredHead> LastHead(Database& db) {
  ASSIGN_OR_RETURN(Statement query,
                   db.Prepare("SELECT size, note FROM log_head ORDER BY size DESC LIMIT 1"));
  ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row) {
    return Error(StatusCode::kFailedPrecondition,
                 "log `" + db.path() + "` has no signed head yet; export without one");
  }
  return StoredHead{static_cast<std::uint64_t>(query.Int(0)), query.Text(1)};
}

}  // namespace

StatusOr<ExportResult> ExportLog(const std::string& database, const std::string& file,
                                 const std::string& head_file,
                                 const std::function<void(std::uint64_t)>& progress) {
  ASSIGN_OR_RETURN(Database db, Database::Open(database, Database::Mode::kReadOnly));
  RETURN_IF_ERROR(db.Execute("BEGIN"));
  std::optional<StoredHead> head;
  if (!head_file.empty()) {
    ASSIGN_OR_RETURN(head, LastHead(db));
  }
  ASSIGN_OR_RETURN(GrowingFile lines, GrowingFile::Create(file));
  ASSIGN_OR_RETURN(GrowingFile hashes, GrowingFile::Create(file + ".hashes"));
  ASSIGN_OR_RETURN(Statement rows, db.Prepare("SELECT bytes, hash FROM log_leaf ORDER BY seq"));
  ExportResult result;
  while (!head || result.leaves < head->size) {
    ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) {
      break;
    }
    const Bytes bytes = rows.Blob(0);
    RETURN_IF_ERROR(lines.Write(AsText(bytes)));
    RETURN_IF_ERROR(lines.Write("\n"));
    RETURN_IF_ERROR(hashes.Write(PrintHex(rows.Blob(1)) + "\n"));
    ++result.leaves;
    if (progress && result.leaves % kProgressEvery == 0) {
      progress(result.leaves);
    }
  }
  if (head && result.leaves != head->size) {
    return Error(StatusCode::kDataLoss, "log `" + database + "`: head says " +
                                            std::to_string(head->size) + " entries, log has " +
                                            std::to_string(result.leaves));
  }
  RETURN_IF_ERROR(hashes.Finish());
  RETURN_IF_ERROR(lines.Finish());
  if (head) {
    result.head_size = head->size;
    RETURN_IF_ERROR(WriteFileDurably(head_file, AsBytes(head->note)));
  }
  return result;
}

StatusOr<std::vector<Digest>> ParseLeafHashes(std::string_view text) {
  std::vector<Digest> hashes;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto hash = ParseDigest(text.substr(0, end));
    if (!hash.ok() || end == std::string_view::npos) {
      return Error(StatusCode::kInvalidArgument, "list of leaf hashes, line " +
                                                     std::to_string(hashes.size() + 1) +
                                                     ": not 64 hexadecimal digits and a line end");
    }
    hashes.push_back(*hash);
    text.remove_prefix(end + 1);
  }
  return hashes;
}

}  // namespace domicile::audit
