#include "base/sqlite.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"

namespace domicile {
namespace {

constexpr std::uint32_t kKind = 0xD0A11C1EU;  // above 2^31: SQLite keeps it as a negative number
constexpr std::array<std::string_view, 1> kFirst = {
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB) STRICT"};
constexpr std::array<std::string_view, 2> kSecond = {
    kFirst[0], "ALTER TABLE t ADD COLUMN size INTEGER; UPDATE t SET size = 7"};

class ScratchFile {
 public:
  ScratchFile() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "domicile-sqlite-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path() const { return folder_ + "/x.db"; }

 private:
  std::string folder_;
};

Database OpenNew(const std::string& path) {
  StatusOr<Database> db = Database::Open(path, Database::Mode::kCreate);
  REQUIRE(db.ok());
  REQUIRE(db->Migrate(kKind, kFirst).ok());
  return *std::move(db);
}

std::int64_t CountRows(Database& db) {
  StatusOr<Statement> count = db.Prepare("SELECT count(*) FROM t");
  REQUIRE(count.ok());
  REQUIRE(count->Step().value());
  return count->Int(0);
}

TEST_CASE("Database: values of every type come back as they were") {
  Database db = OpenNew(":memory:");
  StatusOr<Statement> insert = db.Prepare("INSERT INTO t VALUES (?, ?, ?)");
  REQUIRE(insert.ok());
  const Bytes body = {0, 1, 0xFF, 0};
  insert->Bind(1, INT64_MIN).Bind(2, std::string_view("a\0b", 3)).Bind(3, body);
  REQUIRE(insert->Run().ok());
  insert->Reset();
  insert->Bind(1, std::int64_t{2}).Bind(2, std::string_view()).Bind(3, ByteSpan());
  REQUIRE(insert->Run().ok());
  insert->Reset();
  insert->Bind(1, std::int64_t{3}).BindNull(2).BindNull(3);
  REQUIRE(insert->Run().ok());
  CHECK(db.Changes() == 1);

  StatusOr<Statement> read = db.Prepare("SELECT id, name, body FROM t ORDER BY id");
  REQUIRE(read.ok());
  REQUIRE(read->Step().value());
  CHECK(read->Int(0) == INT64_MIN);
  CHECK(read->Text(1) == std::string("a\0b", 3));
  CHECK(read->Blob(2) == body);
  REQUIRE(read->Step().value());
  CHECK(read->Text(1).empty());
  CHECK_FALSE(read->IsNull(1));
  CHECK_FALSE(read->IsNull(2));
  REQUIRE(read->Step().value());
  CHECK(read->IsNull(1));
  CHECK(read->Blob(2).empty());
  CHECK_FALSE(read->Step().value());
}

TEST_CASE("Database: a broken constraint is kAlreadyExists and names the file") {
  Database db = OpenNew(":memory:");
  REQUIRE(db.Execute("INSERT INTO t VALUES (1, 'a', NULL)").ok());

  const Status twice = db.Execute("INSERT INTO t VALUES (2, 'a', NULL)");

  CHECK(twice.code() == StatusCode::kAlreadyExists);
  CHECK(Message(twice).find("`:memory:`") != std::string_view::npos);
  CHECK(db.Execute("NOT SQL").code() == StatusCode::kInternal);
}

TEST_CASE("Database: what was committed is there after reopening, in WAL mode") {
  const ScratchFile file;
  {
    Database db = OpenNew(file.path());
    REQUIRE(db.Execute("INSERT INTO t VALUES (1, 'a', NULL)").ok());
  }
  StatusOr<Database> db = Database::Open(file.path(), Database::Mode::kReadWrite);
  REQUIRE(db.ok());

  CHECK(db->Migrate(kKind, kFirst).ok());
  CHECK(CountRows(*db) == 1);
  StatusOr<Statement> mode = db->Prepare("PRAGMA journal_mode");
  REQUIRE(mode->Step().value());
  CHECK(mode->Text(0) == "wal");
}

TEST_CASE("Database: a file that is no database is kDataLoss and stays as it is") {
  const ScratchFile file;
  const std::string text(5'000, 'x');
  REQUIRE(WriteFileDurably(file.path(), AsBytes(text)).ok());

  for (const auto mode :
       {Database::Mode::kReadOnly, Database::Mode::kReadWrite, Database::Mode::kCreate}) {
    const StatusOr<Database> db = Database::Open(file.path(), mode);
    CHECK(db.status().code() == StatusCode::kDataLoss);
    CHECK(Message(db.status()).find(file.path()) != std::string_view::npos);
  }
  CHECK(ReadFile(file.path(), 10'000).value() == text);
}

TEST_CASE("Database: an absent file is kNotFound, unless it may be made") {
  const ScratchFile file;

  CHECK(Database::Open(file.path(), Database::Mode::kReadOnly).status().code() ==
        StatusCode::kNotFound);
  CHECK(Database::Open(file.path(), Database::Mode::kReadWrite).status().code() ==
        StatusCode::kNotFound);
  CHECK_FALSE(FileExists(file.path()));
  CHECK(Database::Open(file.path(), Database::Mode::kCreate).ok());
}

TEST_CASE("Database: a read-only connection cannot write") {
  const ScratchFile file;
  Database writer = OpenNew(file.path());
  StatusOr<Database> reader = Database::Open(file.path(), Database::Mode::kReadOnly);
  REQUIRE(reader.ok());

  CHECK(CountRows(*reader) == 0);
  CHECK(reader->Execute("INSERT INTO t VALUES (1, 'a', NULL)").code() ==
        StatusCode::kPermissionDenied);
}

TEST_CASE("Migrate: brings an older layout to the newest, keeping rows") {
  const ScratchFile file;
  {
    Database db = OpenNew(file.path());
    REQUIRE(db.Execute("INSERT INTO t VALUES (1, 'a', NULL)").ok());
  }
  StatusOr<Database> db = Database::Open(file.path(), Database::Mode::kReadWrite);
  REQUIRE(db.ok());

  REQUIRE(db->Migrate(kKind, kSecond).ok());

  StatusOr<Statement> read = db->Prepare("SELECT size FROM t");
  REQUIRE(read.ok());
  REQUIRE(read->Step().value());
  CHECK(read->Int(0) == 7);
}

TEST_CASE("Migrate: a file of a newer version or of another kind is refused, unchanged") {
  const ScratchFile file;
  {
    Database db = OpenNew(file.path());
    REQUIRE(db.Migrate(kKind, kSecond).ok());
  }
  StatusOr<Database> db = Database::Open(file.path(), Database::Mode::kReadWrite);
  REQUIRE(db.ok());

  const Status newer = db->Migrate(kKind, kFirst);
  const Status other = db->Migrate(kKind + 1, kSecond);

  CHECK(newer.code() == StatusCode::kFailedPrecondition);
  CHECK(Message(newer).find("newer version") != std::string_view::npos);
  CHECK(Message(newer).find("use that version, or a new folder") != std::string_view::npos);
  CHECK(other.code() == StatusCode::kFailedPrecondition);
  CHECK(Message(other).find("another kind") != std::string_view::npos);
  CHECK(db->Migrate(kKind, kSecond).ok());
}

TEST_CASE("Migrate: a step that fails half way leaves the layout before it") {
  const ScratchFile file;
  Database db = OpenNew(file.path());
  const std::array<std::string_view, 2> broken = {
      kFirst[0], "CREATE TABLE half (id INTEGER) STRICT; CREATE TABLE t (id INTEGER) STRICT"};

  CHECK_FALSE(db.Migrate(kKind, broken).ok());

  CHECK_FALSE(db.Prepare("SELECT * FROM half").ok());
  CHECK(db.Migrate(kKind, kSecond).ok());
}

TEST_CASE("Transaction: rolled back unless committed") {
  Database db = OpenNew(":memory:");
  {
    StatusOr<Transaction> transaction = Transaction::Begin(db);
    REQUIRE(transaction.ok());
    REQUIRE(db.Execute("INSERT INTO t VALUES (1, 'a', NULL)").ok());
    CHECK(CountRows(db) == 1);
  }
  CHECK(CountRows(db) == 0);
  {
    StatusOr<Transaction> transaction = Transaction::Begin(db);
    REQUIRE(transaction.ok());
    REQUIRE(db.Execute("INSERT INTO t VALUES (1, 'a', NULL)").ok());
    const Transaction moved(*std::move(transaction));
  }
  CHECK(CountRows(db) == 0);
  {
    StatusOr<Transaction> transaction = Transaction::Begin(db);
    REQUIRE(transaction.ok());
    REQUIRE(db.Execute("INSERT INTO t VALUES (1, 'a', NULL)").ok());
    REQUIRE(transaction->Commit().ok());
  }
  CHECK(CountRows(db) == 1);
}

TEST_CASE("Transaction: a second writer is told to come back") {
  const ScratchFile file;
  Database first = OpenNew(file.path());
  StatusOr<Database> second = Database::Open(file.path(), Database::Mode::kReadWrite);
  REQUIRE(second.ok());
  REQUIRE(second->Execute("PRAGMA busy_timeout = 0").ok());
  const StatusOr<Transaction> held = Transaction::Begin(first);
  REQUIRE(held.ok());

  CHECK(Transaction::Begin(*second).status().code() == StatusCode::kUnavailable);
  CHECK(CountRows(*second) == 0);  // reading goes on
}

TEST_CASE("Database: a statement may outlive its connection") {
  std::optional<StatusOr<Statement>> kept;
  {
    Database db = OpenNew(":memory:");
    kept = db.Prepare("SELECT count(*) FROM t");
  }

  REQUIRE(kept->ok());
  CHECK((*kept)->Step().value());
  CHECK((*kept)->Int(0) == 0);
}

TEST_CASE("PrepareQuery: one statement that reads, and nothing else") {
  Database db = OpenNew(":memory:");
  const auto refusal = [&db](std::string_view sql) {
    return std::string(Message(db.PrepareQuery(sql).status()));
  };
  CHECK(db.PrepareQuery("SELECT 1").ok());
  CHECK(db.PrepareQuery("WITH a AS (SELECT 1 AS x) SELECT x FROM a; -- that is all").ok());
  CHECK(refusal("INSERT INTO t DEFAULT VALUES RETURNING 1").find("must be one SELECT") !=
        std::string::npos);
  CHECK(refusal("DELETE FROM t").find("must be one SELECT") != std::string::npos);
  CHECK(refusal("SELECT 1; SELECT 2").find("nothing after it") != std::string::npos);
  CHECK(refusal("SELECT 1; nonsense").find("nothing after it") != std::string::npos);
  CHECK(refusal("SELEKT 1").find("is not understood") != std::string::npos);
  CHECK(refusal(" ").find("must be one SELECT") != std::string::npos);
}

TEST_CASE("Statement: a query's columns have names, and each value its type") {
  Database db = OpenNew(":memory:");
  StatusOr<Statement> query =
      db.PrepareQuery("SELECT 7 AS a, 0.5 AS b, 'x' AS \"c d\", x'00ff' AS e, NULL AS f");
  REQUIRE(query.ok());
  REQUIRE(query->Step().value());

  REQUIRE(query->NumColumns() == 5);
  CHECK(query->ColumnName(2) == "c d");
  using Type = Statement::Type;
  const Type types[] = {Type::kInteger, Type::kReal, Type::kText, Type::kBlob, Type::kNull};
  for (int column = 0; column < 5; ++column) {
    CHECK(query->TypeOf(column) == types[column]);
  }
  CHECK(query->Double(1) == 0.5);
}

TEST_CASE("Database: a frozen file is read as it is, without a lock or a file beside it") {
  const ScratchFile file;
  const std::string odd = file.path() + " 100%?#.db";
  {
    Database db = OpenNew(file.path());
    REQUIRE(db.Execute("VACUUM INTO '" + odd + "'").ok());
  }
  StatusOr<Database> frozen = Database::Open(odd, Database::Mode::kFrozen);
  REQUIRE(frozen.ok());
  CHECK(CountRows(*frozen) == 0);
  CHECK(frozen->Execute("DELETE FROM t").code() == StatusCode::kPermissionDenied);
  CHECK_FALSE(std::filesystem::exists(odd + "-shm"));

  // Changes that are in the log of a writer only would be missing without a word.
  {
    Database writer = OpenNew(file.path());
    REQUIRE(writer.Execute("INSERT INTO t (name) VALUES ('late')").ok());
    const StatusOr<Database> early = Database::Open(file.path(), Database::Mode::kFrozen);
    CHECK(early.status().code() == StatusCode::kFailedPrecondition);
    CHECK(Message(early.status()).find("-wal") != std::string_view::npos);
  }
  CHECK(Database::Open(file.path(), Database::Mode::kFrozen).ok());
  std::filesystem::remove(odd);
}

}  // namespace
}  // namespace domicile
