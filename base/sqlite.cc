#include "base/sqlite.h"

#include <filesystem>
#include <utility>

#include <sqlite3.h>

namespace domicile {

namespace {

StatusCode CodeOf(int result) {
  switch (result & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return StatusCode::kDataLoss;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return StatusCode::kResourceExhausted;
    case SQLITE_CONSTRAINT:
      return StatusCode::kAlreadyExists;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return StatusCode::kPermissionDenied;
    case SQLITE_CANTOPEN:
      return StatusCode::kNotFound;
    case SQLITE_IOERR:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

Status SqliteError(sqlite3* db, int result, const std::string& file) {
  return Error(CodeOf(result), "database `" + file + "`: " +
                                   (db == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(db)));
}

// The name by which SQLite takes a file as one that nobody changes.
std::string FrozenName(const std::string& path) {
  std::string name = "file:";
  for (const char c : path) {
    const bool is_special = c == '%' || c == '?' || c == '#';
    name += is_special ? "%" + PrintHex(AsBytes(std::string_view(&c, 1))) : std::string(1, c);
  }
  return name + "?immutable=1";
}

// With `immutable`, SQLite does not look at what it would find there.
Status CheckNothingBeside(const std::string& path) {
  for (const std::string_view suffix : {"-wal", "-journal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path + std::string(suffix), error);
    if (!error && size > 0) {
      return Error(StatusCode::kFailedPrecondition,
                   "database `" + path + "`: changes lie in the file with `" + std::string(suffix) +
                       "` at its end; close the program that writes to it, or copy the database "
                       "with `VACUUM INTO`");
    }
  }
  return OkStatus();
}

}  // namespace

Statement::Statement(sqlite3_stmt* statement, std::string file)
    : statement_(statement), file_(std::move(file)) {}

Statement::Statement(Statement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), file_(std::move(other.file_)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    sqlite3_finalize(statement_);
    statement_ = std::exchange(other.statement_, nullptr);
    file_ = std::move(other.file_);
  }
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::Bind(int index, std::int64_t value) {
  DOMICILE_CHECK(sqlite3_bind_int64(statement_, index, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  DOMICILE_CHECK(sqlite3_bind_text64(statement_, index, text.data() == nullptr ? "" : text.data(),
                                     text.size(), SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Statement& Statement::Bind(int index, ByteSpan blob) {
  const int result = blob.empty() ? sqlite3_bind_zeroblob(statement_, index, 0)
                                  : sqlite3_bind_blob64(statement_, index, blob.data(), blob.size(),
                                                        SQLITE_TRANSIENT);
  DOMICILE_CHECK(result == SQLITE_OK);
  return *this;
}

Statement& Statement::BindNull(int index) {
  DOMICILE_CHECK(sqlite3_bind_null(statement_, index) == SQLITE_OK);
  return *this;
}

StatusOr<bool> Statement::Step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) {
    return true;
  }
  if (result == SQLITE_DONE) {
    return false;
  }
  return SqliteError(sqlite3_db_handle(statement_), result, file_);
}

Status Statement::Run() {
  ASSIGN_OR_RETURN(const bool row, Step());
  DOMICILE_CHECK(!row);
  return OkStatus();
}

void Statement::Reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

std::int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Statement::Text(int column) const {
  const auto* text = sqlite3_column_text(statement_, column);
  return text == nullptr
             ? std::string()
             : std::string(reinterpret_cast<const char*>(text),
                           static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

Bytes Statement::Blob(int column) const {
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, column));
  return data == nullptr ? Bytes() : Bytes(data, data + sqlite3_column_bytes(statement_, column));
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

int Statement::NumColumns() const { return sqlite3_column_count(statement_); }

std::string Statement::ColumnName(int column) const {
  const char* const name = sqlite3_column_name(statement_, column);
  return name == nullptr ? std::string() : std::string(name);
}

Statement::Type Statement::TypeOf(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return Type::kInteger;
    case SQLITE_FLOAT:
      return Type::kReal;
    case SQLITE_TEXT:
      return Type::kText;
    case SQLITE_BLOB:
      return Type::kBlob;
    default:
      return Type::kNull;
  }
}

double Statement::Double(int column) const { return sqlite3_column_double(statement_, column); }

Database::Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

Database::Database(Database&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)), path_(std::move(other.path_)) {}

Database& Database::operator=(Database&& other) noexcept {
  if (this != &other) {
    sqlite3_close_v2(db_);
    db_ = std::exchange(other.db_, nullptr);
    path_ = std::move(other.path_);
  }
  return *this;
}

// The _v2 form waits for statements that are still alive, so the order of destruction is free.
Database::~Database() { sqlite3_close_v2(db_); }

StatusOr<Database> Database::Open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  switch (mode) {
    case Mode::kReadOnly:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::kReadWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::kCreate:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
    case Mode::kFrozen:
      RETURN_IF_ERROR(CheckNothingBeside(path));
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
      break;
  }
  sqlite3* handle = nullptr;
  const std::string name = mode == Mode::kFrozen ? FrozenName(path) : path;
  const int opened = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  Database db(handle, path);
  if (opened != SQLITE_OK) {
    return SqliteError(handle, opened, path);
  }
  sqlite3_busy_timeout(handle, 5000);
  // The first read shows whether the file is a database at all.
  RETURN_IF_ERROR(db.Execute("PRAGMA schema_version; PRAGMA foreign_keys = ON"));
  if (mode == Mode::kFrozen) {
    RETURN_IF_ERROR(db.Execute("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF"));
  } else if (mode != Mode::kReadOnly) {
    RETURN_IF_ERROR(db.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
  }
  return db;
}

Status Database::Execute(std::string_view sql) {
  const std::string text(sql);
  const int result = sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? OkStatus() : SqliteError(db_, result, path_);
}

StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result =
      sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (result != SQLITE_OK) {
    return SqliteError(db_, result, path_);
  }
  return Statement(statement, path_);
}

StatusOr<Statement> Database::PrepareQuery(std::string_view sql) {
  const std::string text(sql);
  sqlite3_stmt* handle = nullptr;
  const char* rest = nullptr;
  const int result = sqlite3_prepare_v2(db_, text.c_str(), -1, &handle, &rest);
  Statement statement(handle, path_);
  const auto refuse = [this](std::string_view what) {
    return Error(StatusCode::kInvalidArgument,
                 "database `" + path_ + "`: the query " + std::string(what));
  };
  if (result != SQLITE_OK) {
    return refuse(std::string("is not understood: ") + sqlite3_errmsg(db_));
  }
  if (handle == nullptr || sqlite3_column_count(handle) == 0 ||
      sqlite3_stmt_readonly(handle) == 0) {
    return refuse("must be one SELECT");
  }
  // What follows may be a comment: then preparing it gives no statement.
  sqlite3_stmt* second = nullptr;
  const int more = sqlite3_prepare_v2(db_, rest, -1, &second, nullptr);
  const Statement owned(second, path_);
  return more == SQLITE_OK && second == nullptr
             ? StatusOr<Statement>(std::move(statement))
             : refuse("must be one SELECT, with nothing after it");
}

std::int64_t Database::Changes() const { return sqlite3_changes64(db_); }

bool Database::InTransaction() const { return sqlite3_get_autocommit(db_) == 0; }

Status Database::Migrate(std::uint32_t application_id,
                         std::span<const std::string_view> migrations) {
  const auto pragma = [this](std::string_view name) -> StatusOr<std::int64_t> {
    ASSIGN_OR_RETURN(Statement read, Prepare("PRAGMA " + std::string(name)));
    ASSIGN_OR_RETURN(const bool row, read.Step());
    return row ? read.Int(0) : 0;
  };
  ASSIGN_OR_RETURN(const std::int64_t found_id, pragma("application_id"));
  ASSIGN_OR_RETURN(const std::int64_t found_version, pragma("user_version"));
  ASSIGN_OR_RETURN(const std::int64_t schema_version, pragma("schema_version"));
  const bool is_new = schema_version == 0;
  // SQLite keeps the id as a signed 32-bit number.
  if (!is_new && static_cast<std::uint32_t>(found_id) != application_id) {
    return Error(StatusCode::kFailedPrecondition,
                 "database `" + path_ + "`: a file of another kind; nothing was changed");
  }
  const auto newest = static_cast<std::int64_t>(migrations.size());
  if (found_version > newest) {
    return Error(StatusCode::kFailedPrecondition,
                 "database `" + path_ + "`: layout " + std::to_string(found_version) +
                     " was written by a newer version (this one knows " + std::to_string(newest) +
                     "); use that version, or a new folder");
  }
  for (std::int64_t version = found_version; version < newest; ++version) {
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*this));
    RETURN_IF_ERROR(Execute(migrations[static_cast<std::size_t>(version)]));
    RETURN_IF_ERROR(Execute(
        "PRAGMA application_id = " + std::to_string(static_cast<std::int32_t>(application_id)) +
        "; PRAGMA user_version = " + std::to_string(version + 1)));
    RETURN_IF_ERROR(transaction.Commit());
  }
  return OkStatus();
}

StatusOr<Transaction> Transaction::Begin(Database& db) {
  RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
  return Transaction(&db);
}

Transaction::Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}

Transaction::~Transaction() {
  if (db_ != nullptr) {
    // Failing to roll back leaves the transaction open; the next BEGIN reports it.
    sqlite3_exec(db_->db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Status Transaction::Commit() {
  DOMICILE_CHECK(db_ != nullptr);
  RETURN_IF_ERROR(db_->Execute("COMMIT"));
  db_ = nullptr;
  return OkStatus();
}

}  // namespace domicile
