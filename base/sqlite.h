// SQLite with Status: databases, statements, transactions.
//
// Databases are opened in WAL mode with synchronous=FULL: a committed transaction survives power
// loss. STRICT tables are expected. Every error names the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace domicile {

// A prepared statement. Binds and columns count from 1 and 0 as in SQLite. One thread at a time.
//
//   ASSIGN_OR_RETURN(Statement find, db.Prepare("SELECT size FROM blob WHERE digest = ?"));
//   find.Bind(1, digest.bytes);
//   ASSIGN_OR_RETURN(const bool found, find.Step());
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  // Values are copied. A wrong index is a bug of ours and aborts.
  Statement& Bind(int index, std::int64_t value);
  Statement& Bind(int index, std::string_view text);
  Statement& Bind(int index, ByteSpan blob);
  Statement& BindNull(int index);

  // True: a row is there to read. False: done. Errors: kUnavailable (busy), kDataLoss (corrupt),
  // kResourceExhausted (disk full), kAlreadyExists (a constraint), kInternal.
  StatusOr<bool> Step();
  // Runs a statement that gives no rows.
  Status Run();
  // Ready to bind and step again; bindings are cleared.
  void Reset();

  std::int64_t Int(int column) const;
  std::string Text(int column) const;
  Bytes Blob(int column) const;
  bool IsNull(int column) const;

  // What a query gives: its columns, and the type of a value of the row that is there to read.
  enum class Type : unsigned char { kNull, kInteger, kReal, kText, kBlob };
  int NumColumns() const;
  std::string ColumnName(int column) const;
  Type TypeOf(int column) const;
  double Double(int column) const;

 private:
  friend class Database;
  Statement(sqlite3_stmt* statement, std::string file);
  sqlite3_stmt* statement_;
  std::string file_;
};

// One connection. One thread at a time: guard it with a Mutex where threads share it.
class Database {
 public:
  // kFrozen: read-only, of a file that nobody changes. It takes no lock and makes no file, also
  // where the folder cannot be written to.
  enum class Mode : unsigned char { kReadOnly, kReadWrite, kCreate, kFrozen };

  // `:memory:` opens a database in memory. Refuses a file that is not a database.
  // Errors: kNotFound, kPermissionDenied, kDataLoss (not a database, or damaged), kUnavailable;
  // kFailedPrecondition for kFrozen where changes lie beside the file and not in it.
  static StatusOr<Database> Open(const std::string& path, Mode mode);

  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  // One or more statements without parameters or rows.
  Status Execute(std::string_view sql);
  StatusOr<Statement> Prepare(std::string_view sql);

  // A query that somebody else wrote: one statement, which only reads and gives rows. Errors:
  // kInvalidArgument.
  StatusOr<Statement> PrepareQuery(std::string_view sql);

  // Makes the tables of a new database, or checks that an old one is ours: `application_id` names
  // the kind of file, `version` the layout. Steps: migrations[i] brings version i to i + 1, each in
  // a transaction. Errors: kFailedPrecondition for another kind of file, or one written by a newer
  // program ("written by a newer version; use that version or a new folder"), both unchanged.
  Status Migrate(std::uint32_t application_id, std::span<const std::string_view> migrations);

  // Rows changed by the last statement.
  std::int64_t Changes() const;
  // Whether a transaction is open on this connection.
  bool InTransaction() const;
  const std::string& path() const { return path_; }

 private:
  friend class Transaction;
  Database(sqlite3* db, std::string path);
  sqlite3* db_;
  std::string path_;
};

// Rolls back when destroyed, unless Commit() has returned OK. Borrows the connection.
class Transaction {
 public:
  // Takes the write lock now, so that a conflict shows here and not at the first write.
  static StatusOr<Transaction> Begin(Database& db);

  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Status Commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;  // null once committed or moved from
};

}  // namespace domicile
