// Snapshots, of a real PostgreSQL where its server is installed.
#include "site_agent/datasets/snapshot.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "crypto/sha256.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::DatasetDescription;

DatasetDescription DescribeSnapshot(std::string file, std::string query) {
  DatasetDescription description = Describe({std::move(file)});
  description.source = contracts::DataSource::kPostgresql;
  description.query = std::move(query);
  return description;
}

// Where Debian or the path has the server's programs; empty if nowhere.
std::string FindServer() {
  std::error_code ignored;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored)) {
    if (std::filesystem::exists(version.path() / "bin" / "initdb")) {
      return (version.path() / "bin").string();
    }
  }
  return {};
}

// A server of its own on a socket in a folder, without a network. It does not run as root.
class Server {
 public:
  Server(const std::string& programs, const std::string& folder)
      : as_(geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups -- " : ""),
        control_(programs + "/pg_ctl -D " + folder + "/data -l " + folder + "/log -w -s ") {
    if (geteuid() == 0) {
      Must("chown postgres " + folder);
    }
    Must(as_ + programs + "/initdb -A trust -U domicile -D " + folder +
         "/data --no-sync -E UTF8 > /dev/null");
    Must(as_ + control_ + "-o \"-c listen_addresses='' -c fsync=off -k " + folder +
         "\" start > /dev/null");
    is_started_ = true;
    ::setenv("PGHOST", folder.c_str(), 1);
    ::setenv("PGUSER", "domicile", 1);
    ::setenv("PGDATABASE", "postgres", 1);
    psql_ = programs + "/psql -q -v ON_ERROR_STOP=1 -c ";
  }
  ~Server() {
    if (is_started_) {
      std::system((as_ + control_ + "-m immediate stop > /dev/null").c_str());
    }
    for (const char* const name : {"PGHOST", "PGUSER", "PGDATABASE"}) {
      ::unsetenv(name);
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Execute(const std::string& sql) const { Must(psql_ + "\"" + sql + "\""); }

 private:
  static void Must(const std::string& command) {
    INFO(command);
    REQUIRE(std::system(command.c_str()) == 0);
  }

  std::string as_;
  std::string control_;
  std::string psql_;
  bool is_started_ = false;
};

TEST_CASE("TakeSnapshot: what a query gives is frozen, and read as it was to the last bit") {
  const std::string programs = FindServer();
  if (programs.empty()) {
    MESSAGE("skipped: PostgreSQL's server is not installed (Debian: postgresql)");
    return;
  }
  const Folder folder;
  const Server server(programs, folder.Path());
  server.Execute(
      "CREATE TABLE ward (id int, chol float8, name text, died bool);"
      "INSERT INTO ward VALUES (1, 0.1, 'a,b', false), (2, 1e-300, E'line\\nbreak', true),"
      " (3, NULL, 'Ünal', true)");
  const std::string file = JoinPath(folder.Path(), "ward.csv");
  auto description = DescribeSnapshot(file, "SELECT * FROM ward ORDER BY id");

  const StatusOr<Snapshot> snapshot = TakeSnapshot(description, file);
  INFO(ToString(snapshot.status()));
  REQUIRE(snapshot.ok());
  CHECK(snapshot->records == 3);
  CHECK(snapshot->columns == 4);
  const std::string text = ReadFile(file, 1 << 20).value();
  CHECK(text ==
        "id,chol,name,died\r\n1,0.1,\"a,b\",f\r\n2,1e-300,\"line\nbreak\",t\r\n3,,Ünal,t\r\n");
  CHECK(ReadFile(file + ".sha256", 4096).value() ==
        PrintHex(crypto::Sha256(AsBytes(text))) + "  ward.csv\n");
  const auto table = ReadTable(description);
  REQUIRE(table.ok());
  CHECK(table->records.Cell(1, 2) == "line\nbreak");

  description.columns = {Column("died")};
  description.columns[0].codes = {{"f", "no"}, {"t", "yes"}};
  contracts::SchemaContract schema = Numbers({"chol"}, "died");
  schema.label = {};
  schema.label.column = "died";
  schema.label.classes = {"no", "yes"};
  const auto data = LoadDataset(description, schema);
  REQUIRE(data.ok());
  CHECK(data->training.inputs == std::vector<double>{0.1, 1e-300, 0});
  CHECK(data->training.labels == std::vector<std::uint32_t>{0, 1, 1});

  // One column whose cell is empty is a record still.
  description = DescribeSnapshot(file, "SELECT chol FROM ward WHERE id = 3");
  REQUIRE(TakeSnapshot(description, file).ok());
  CHECK(ReadTable(description)->records.NumRows() == 1);
  description.query = "SELECT chol FROM ward WHERE id = 4";
  REQUIRE(TakeSnapshot(description, file).ok());
  CHECK(ReadTable(description)->records.NumRows() == 0);

  const auto refusal = [&](const std::string& query) {
    description.query = query;
    return std::string(Message(TakeSnapshot(description, file).status()));
  };
  CHECK(Contains(refusal("SELECT nobody FROM ward"), "SQLSTATE 42703: column"));
  CHECK(Contains(refusal("SELECT 1 AS x, 2 AS x"), "two columns named `x`"));
  CHECK(Contains(refusal("DELETE FROM ward RETURNING id"), "SQLSTATE 25006"));
  CHECK(Contains(refusal("SELECT 1; DROP TABLE ward"), "SQLSTATE 42601"));
  CHECK(Contains(refusal("RESET ALL"), "must be one SELECT"));
  const std::string quoting = refusal("SELECT name::int FROM ward");
  CHECK(Contains(quoting, "SQLSTATE 22P02"));
  CHECK_FALSE(Contains(quoting, "a,b"));  // the server's own words would quote the cell
}

TEST_CASE("ReadTable: a snapshot that is not the one of its digest is refused") {
  const Folder folder;
  const std::string text = "x,y\r\n1,0\r\n";
  const std::string file = folder.Write("s.csv", text);
  const auto description = DescribeSnapshot(file, "SELECT 1");
  CHECK(Contains(FaultText(ReadTable(description).TheFault()), ".sha256"));

  folder.Write("s.csv.sha256", PrintHex(crypto::Sha256(AsBytes(text))) + "  s.csv\n");
  CHECK(ReadTable(description).ok());

  folder.Write("s.csv", text + "2,0\r\n");
  CHECK(Contains(FaultText(ReadTable(description).TheFault()),
                 file + ": is not the snapshot whose digest is in " + file + ".sha256"));
  folder.Write("s.csv.sha256", "nothing\n");
  CHECK(Contains(FaultText(ReadTable(description).TheFault()), "s.csv.sha256:1: "));
}

TEST_CASE("TakeSnapshot: only of a database, and without one nothing is written") {
  const Folder folder;
  const std::string file = JoinPath(folder.Path(), "s.csv");
  CHECK(TakeSnapshot(Describe({file}), file).status().code() == StatusCode::kInvalidArgument);

  ::setenv("PGHOST", folder.Path().c_str(), 1);
  const StatusOr<Snapshot> none = TakeSnapshot(DescribeSnapshot(file, "SELECT 1"), file);
  ::unsetenv("PGHOST");
  CHECK(none.status().code() == StatusCode::kUnavailable);
  CHECK_FALSE(FileExists(file));
}

}  // namespace
}  // namespace domicile::site_agent
