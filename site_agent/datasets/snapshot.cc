#include "site_agent/datasets/snapshot.h"

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"
#include "site_agent/datasets/internal/libpq.h"
#include "site_agent/datasets/internal/sources.h"

namespace domicile::site_agent {
namespace {

using internal::Libpq;

constexpr std::uint64_t kMaxDigestFile = 4096;

using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

// A cell, quoted where RFC 4180 wants it.
void AppendCell(std::string& out, std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += cell;
    return;
  }
  out += '"';
  for (const char c : cell) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  out += '"';
}

// One connection, for one query. One thread at a time.
class Connection {
 public:
  static StatusOr<Connection> Open(const Libpq& pq, const std::string& service) {
    const char* const names[] = {"fallback_application_name", "client_encoding",
                                 service.empty() ? nullptr : "service", nullptr};
    const char* const values[] = {"domicile-trainer", "UTF8", service.c_str(), nullptr};
    Connection connection(pq, pq.connect(names, values, 0));
    if (pq.status(connection.handle_.get()) != CONNECTION_OK) {
      return Error(StatusCode::kUnavailable,
                   "no connection to the database: " +
                       std::string(StripWhitespace(pq.connection_error(connection.handle_.get()))));
    }
    // What a number or a date looks like must not depend on how a server is set up.
    RETURN_IF_ERROR(connection.Run("SET extra_float_digits = 1"));
    RETURN_IF_ERROR(connection.Run("SET datestyle = 'ISO, YMD'"));
    RETURN_IF_ERROR(connection.Run("SET intervalstyle = 'iso_8601'"));
    RETURN_IF_ERROR(connection.Run("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"));
    return connection;
  }

  // The answer as a table with its header; counts what it has.
  StatusOr<std::string> Query(const std::string& query, Snapshot& counts) {
    // The form with parameters takes one statement only.
    if (pq_->send_query(handle_.get(), query.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) !=
            1 ||
        pq_->one_row_at_a_time(handle_.get()) != 1) {
      return Error(StatusCode::kUnavailable, "the connection to the database broke");
    }
    std::string table;
    Status status;
    // Every result is taken, also after an error: only then is the query over.
    for (Result result = Next(); result != nullptr; result = Next()) {
      if (status.ok()) {
        status = Take(*result, counts, table);
      }
    }
    RETURN_IF_ERROR(status);
    return table;
  }

 private:
  Connection(const Libpq& pq, PGconn* handle) : pq_(&pq), handle_(handle, pq.finish) {}

  Result Next() { return {pq_->next_result(handle_.get()), pq_->clear}; }

  Status Run(const char* statement) {
    const Result result(pq_->execute(handle_.get(), statement), pq_->clear);
    return pq_->result_status(result.get()) == PGRES_COMMAND_OK ? OkStatus() : Refused(*result);
  }

  // What the server says may quote a cell, unless it is about the text of the query.
  Status Refused(const PGresult& result) const {
    const auto field = [&](int code) {
      const char* const text = pq_->error_field(&result, code);
      return std::string(text == nullptr ? "" : text);
    };
    const std::string state = field(PG_DIAG_SQLSTATE);
    return Error(StatusCode::kInvalidArgument,
                 "the database refuses the query, SQLSTATE " + (state.empty() ? "unknown" : state) +
                     (state.starts_with("42") ? ": " + field(PG_DIAG_MESSAGE_PRIMARY) : ""));
  }

  Status Take(const PGresult& result, Snapshot& counts, std::string& table) const {
    switch (pq_->result_status(&result)) {
      case PGRES_SINGLE_TUPLE:
        break;
      case PGRES_TUPLES_OK:  // the end, without rows
        return table.empty() ? AppendHeader(result, counts, table) : OkStatus();
      case PGRES_COMMAND_OK:
      case PGRES_EMPTY_QUERY:
        return Error(StatusCode::kInvalidArgument, "the query must be one SELECT");
      default:
        return Refused(result);
    }
    if (table.empty()) {
      RETURN_IF_ERROR(AppendHeader(result, counts, table));
    }
    AppendRow(result, table);
    ++counts.records;
    return OkStatus();
  }

  Status AppendHeader(const PGresult& result, Snapshot& counts, std::string& table) const {
    std::set<std::string> seen;
    for (int i = 0; i < pq_->num_columns(&result); ++i) {
      const std::string name = pq_->column_name(&result, i);
      if (!seen.insert(name).second) {
        return Error(StatusCode::kInvalidArgument,
                     "the query gives two columns named `" + Visible(name) + "`; rename one by AS");
      }
      table += i == 0 ? "" : ",";
      AppendCell(table, name);
    }
    if (seen.empty()) {
      return Error(StatusCode::kInvalidArgument, "the query gives no columns");
    }
    counts.columns = seen.size();
    table += "\r\n";
    return OkStatus();
  }

  void AppendRow(const PGresult& result, std::string& table) const {
    const std::size_t begin = table.size();
    for (int i = 0; i < pq_->num_columns(&result); ++i) {
      table += i == 0 ? "" : ",";
      if (pq_->is_null(&result, 0, i) == 0) {
        AppendCell(table, {pq_->value(&result, 0, i),
                           static_cast<std::size_t>(pq_->length(&result, 0, i))});
      }
    }
    // An empty line would not be a record.
    table += table.size() == begin ? "\"\"\r\n" : "\r\n";
  }

  const Libpq* pq_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
};

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
}

}  // namespace

StatusOr<Snapshot> TakeSnapshot(const contracts::DatasetDescription& description,
                                const std::string& file) {
  if (description.source != contracts::DataSource::kPostgresql) {
    return Error(StatusCode::kInvalidArgument,
                 "a snapshot is taken of a dataset of source `postgresql`; this one is read as "
                 "its files lie");
  }
  ASSIGN_OR_RETURN(const Libpq* const pq, internal::LoadLibpq());
  ASSIGN_OR_RETURN(Connection connection, Connection::Open(*pq, description.service));
  Snapshot snapshot;
  snapshot.file = file;
  ASSIGN_OR_RETURN(const std::string table, connection.Query(description.query, snapshot));
  RETURN_IF_ERROR(WriteFileDurably(file, AsBytes(table)));
  snapshot.digest = crypto::Sha256(AsBytes(table));
  const std::string line = PrintHex(snapshot.digest) + "  " + BaseName(file) + "\n";
  RETURN_IF_ERROR(WriteFileDurably(contracts::SnapshotDigestFile(file), AsBytes(line)));
  return snapshot;
}

namespace internal {

Status ReadSnapshot(const contracts::DatasetDescription& description, RecordWriter& out) {
  const std::string& file = description.files.front();
  const std::string digest_file = contracts::SnapshotDigestFile(file);
  ASSIGN_OR_RETURN(const std::string line, ReadFile(digest_file, kMaxDigestFile));
  const StatusOr<Digest> wanted = ParseDigest(std::string_view(line).substr(0, 64));
  if (!wanted.ok()) {
    return Error(StatusCode::kInvalidArgument,
                 digest_file + ":1: does not begin with a SHA-256 digest; take the snapshot anew");
  }
  ASSIGN_OR_RETURN(const crypto::FileDigest found, crypto::FileSha256(file));
  if (found.digest != *wanted) {
    return Error(StatusCode::kInvalidArgument, file + ": is not the snapshot whose digest is in " +
                                                   digest_file + "; take it anew");
  }
  return ReadCsvFile(file, ',', out);
}

}  // namespace internal

}  // namespace domicile::site_agent
