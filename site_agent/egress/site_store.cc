#include "site_agent/egress/site_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "audit/log.h"
#include "contracts/in_force/policy_store.h"

namespace domicile::site_agent {

namespace {

// "DMSA" in ASCII; never changes.
constexpr std::uint32_t kApplicationId = 0x444D5341;
constexpr std::uint64_t kLargestModel = std::uint64_t{1} << 36U;

constexpr std::string_view kTables = R"sql(
  CREATE TABLE life (
    instance INTEGER NOT NULL, aggregator_starts INTEGER NOT NULL, witnessed INTEGER NOT NULL)
    STRICT;
  INSERT INTO life VALUES (0, 0, 0);
  CREATE TABLE behind (note TEXT NOT NULL, instance INTEGER NOT NULL, leaf INTEGER) STRICT;
  CREATE TABLE spent (dataset TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE job (
    id TEXT PRIMARY KEY, plan TEXT NOT NULL, base_model BLOB NOT NULL, base_size INTEGER NOT NULL,
    last_model BLOB NOT NULL, train_commits INTEGER NOT NULL, statistics INTEGER NOT NULL,
    committed_model BLOB NOT NULL, committed_leaf INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE closed_job (id TEXT PRIMARY KEY, reason INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE run (job TEXT PRIMARY KEY, dataset TEXT NOT NULL, at INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE commit_seen (
    job TEXT NOT NULL, round INTEGER NOT NULL, phase INTEGER NOT NULL, leaf INTEGER NOT NULL,
    PRIMARY KEY (job, round, phase)) STRICT, WITHOUT ROWID;
  CREATE TABLE outbox (
    job TEXT NOT NULL, round INTEGER NOT NULL, phase INTEGER NOT NULL, digest BLOB NOT NULL,
    size INTEGER NOT NULL, base_model BLOB NOT NULL, policy BLOB NOT NULL, leaf INTEGER NOT NULL,
    numbers INTEGER NOT NULL, records INTEGER NOT NULL,
    PRIMARY KEY (job, round, phase)) STRICT, WITHOUT ROWID;
  CREATE TABLE release (
    dataset TEXT NOT NULL, job TEXT NOT NULL, round INTEGER NOT NULL, phase INTEGER NOT NULL,
    transfer BLOB NOT NULL, commitment BLOB NOT NULL, numbers INTEGER NOT NULL,
    charge INTEGER NOT NULL, bytes INTEGER NOT NULL, epsilon_micro INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (job, round, phase))
    STRICT, WITHOUT ROWID;
  CREATE TABLE statistics (
    commitment BLOB NOT NULL, columns BLOB NOT NULL, question BLOB NOT NULL,
    numbers BLOB NOT NULL, records INTEGER NOT NULL, PRIMARY KEY (commitment, columns))
    STRICT, WITHOUT ROWID;
)sql";

Statement& BindPhase(Statement& statement, int first, const PhaseId& phase) {
  return statement.Bind(first, phase.job.text())
      .Bind(first + 1, static_cast<std::int64_t>(phase.round))
      .Bind(first + 2, static_cast<std::int64_t>(phase.phase));
}

// The ledger counts whole units of 1e-9 numbers per record, rounded up: sums are exact, in any
// order.
constexpr std::int64_t kChargeUnit = 1'000'000'000;

constexpr double kMicro = 1'000'000;

// Beyond every limit, and still a number: what is added to it is compared and not an error.
constexpr double kAllSpent = std::numeric_limits<double>::max();
constexpr std::uint64_t kAllRuns = std::uint64_t{1} << 40U;

// Of whole units; up, so that no limit is passed by what a double cannot hold.
double UpTo(std::int64_t units, double unit) {
  const double sum = static_cast<double>(units) / unit;
  return units == 0 ? 0 : std::nextafter(sum, std::numeric_limits<double>::infinity());
}

// What cannot be told is as if one record were behind it; what is beyond any limit stays countable.
std::int64_t ChargeOf(std::uint64_t numbers, std::uint64_t records) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  const std::uint64_t units = std::min(numbers, kMost) * static_cast<std::uint64_t>(kChargeUnit);
  const std::uint64_t behind = std::max<std::uint64_t>(records, 1);
  return static_cast<std::int64_t>(units / behind + (units % behind == 0 ? 0 : 1));
}

std::int64_t Seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

constexpr std::string_view kOutboxColumns =
    "SELECT job, round, phase, digest, size, base_model, policy, leaf, numbers, records FROM "
    "outbox ";

StatusOr<OutboxRow> ReadOutbox(const Statement& row) {
  OutboxRow out;
  ASSIGN_OR_RETURN(out.phase.job, JobId::Parse(row.Text(0)));
  out.phase.round = static_cast<RoundNumber>(row.Int(1));
  out.phase.phase = static_cast<contracts::PhaseKind>(row.Int(2));
  ASSIGN_OR_RETURN(out.digest, DigestFromBytes(row.Blob(3)));
  out.size_bytes = static_cast<std::uint64_t>(row.Int(4));
  ASSIGN_OR_RETURN(out.base_model, DigestFromBytes(row.Blob(5)));
  ASSIGN_OR_RETURN(out.policy, DigestFromBytes(row.Blob(6)));
  out.leaf = static_cast<std::uint64_t>(row.Int(7));
  out.numbers = static_cast<std::uint64_t>(row.Int(8));
  out.records = static_cast<std::uint64_t>(row.Int(9));
  return out;
}

// Removes the files of a folder whose digest no row names.
Status RemoveUnnamed(Database& db, const std::string& folder, std::string_view query) {
  RETURN_IF_ERROR(RemoveTemporaries(folder));
  std::set<std::string> named;
  ASSIGN_OR_RETURN(Statement all, db.Prepare(query));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, all.Step());
    if (!row) {
      break;
    }
    named.insert(PrintHex(all.Blob(0)));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(folder));
  for (const std::string& file : files) {
    if (!named.contains(file)) {
      RETURN_IF_ERROR(RemoveFile(JoinPath(folder, file)));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<SiteStore> SiteStore::Open(const std::string& folder) {
  for (const std::string& part : {folder, JoinPath(folder, "outbox"), JoinPath(folder, "models")}) {
    RETURN_IF_ERROR(CreateFolders(part));
  }
  ASSIGN_OR_RETURN(FileHandle lock, LockFile(JoinPath(folder, "lock"), "agent"));
  ASSIGN_OR_RETURN(Database opened,
                   Database::Open(JoinPath(folder, "agent.db"), Database::Mode::kCreate));
  auto db = std::make_unique<Database>(std::move(opened));
  const std::array<std::string_view, 3> migrations = {audit::kLogTables, kTables,
                                                      contracts::kPolicyTables};
  RETURN_IF_ERROR(db->Migrate(kApplicationId, migrations));
  SiteStore store(std::move(lock), std::move(db), folder);
  RETURN_IF_ERROR(store.RaiseInstance());
  RETURN_IF_ERROR(store.RemoveOrphans());
  return store;
}

Status SiteStore::RaiseInstance() {
  ASSIGN_OR_RETURN(Statement raise,
                   db_->Prepare("UPDATE life SET instance = instance + 1 RETURNING instance"));
  ASSIGN_OR_RETURN(const bool row, raise.Step());
  DOMICILE_CHECK(row);
  instance_ = static_cast<std::uint64_t>(raise.Int(0));
  return raise.Run();
}

Status SiteStore::RemoveOrphans() {
  RETURN_IF_ERROR(RemoveUnnamed(*db_, JoinPath(folder_, "outbox"), "SELECT digest FROM outbox"));
  return RemoveUnnamed(*db_, JoinPath(folder_, "models"), "SELECT last_model FROM job");
}

StatusOr<std::uint64_t> SiteStore::AggregatorStarts() {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT aggregator_starts FROM life"));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  DOMICILE_CHECK(row);
  return static_cast<std::uint64_t>(find.Int(0));
}

Status SiteStore::SetAggregatorStarts(std::uint64_t starts) {
  ASSIGN_OR_RETURN(Statement set,
                   db_->Prepare("UPDATE life SET aggregator_starts = max(aggregator_starts, ?)"));
  return set.Bind(1, static_cast<std::int64_t>(starts)).Run();
}

StatusOr<std::optional<JobRow>> SiteStore::FindJob(const JobId& job) {
  ASSIGN_OR_RETURN(
      Statement find,
      db_->Prepare("SELECT plan, base_model, base_size, last_model, train_commits, "
                   "statistics, committed_model, committed_leaf FROM job WHERE id = ?"));
  find.Bind(1, job.text());
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return std::nullopt;
  }
  JobRow row;
  row.job = job;
  row.plan = find.Text(0);
  ASSIGN_OR_RETURN(row.base_model, DigestFromBytes(find.Blob(1)));
  row.base_model_bytes = static_cast<std::uint64_t>(find.Int(2));
  ASSIGN_OR_RETURN(row.last_model, DigestFromBytes(find.Blob(3)));
  row.train_commits = static_cast<std::uint32_t>(find.Int(4));
  row.statistics_committed = find.Int(5) != 0;
  ASSIGN_OR_RETURN(row.committed_model, DigestFromBytes(find.Blob(6)));
  row.committed_leaf = static_cast<std::uint64_t>(find.Int(7));
  return row;
}

Status SiteStore::PutJob(const JobRow& row) {
  ASSIGN_OR_RETURN(Statement put,
                   db_->Prepare("INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return put.Bind(1, row.job.text())
      .Bind(2, row.plan)
      .Bind(3, ByteSpan(row.base_model.bytes))
      .Bind(4, static_cast<std::int64_t>(row.base_model_bytes))
      .Bind(5, ByteSpan(row.last_model.bytes))
      .Bind(6, static_cast<std::int64_t>(row.train_commits))
      .Bind(7, static_cast<std::int64_t>(row.statistics_committed ? 1 : 0))
      .Bind(8, ByteSpan(row.committed_model.bytes))
      .Bind(9, static_cast<std::int64_t>(row.committed_leaf))
      .Run();
}

StatusOr<bool> SiteStore::CloseJob(const JobId& job, policy::Reason why) {
  ASSIGN_OR_RETURN(Statement close,
                   db_->Prepare("INSERT OR IGNORE INTO closed_job VALUES (?, ?) RETURNING 1"));
  close.Bind(1, job.text()).Bind(2, static_cast<std::int64_t>(why));
  ASSIGN_OR_RETURN(const bool is_new, close.Step());
  if (is_new) {
    RETURN_IF_ERROR(close.Run());
  }
  return is_new;
}

StatusOr<policy::Reason> SiteStore::WhyClosed(const JobId& job) {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT reason FROM closed_job WHERE id = ?"));
  find.Bind(1, job.text());
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return policy::Reason::kNone;
  }
  // A number that this program does not know closes the job as well.
  return policy::ReasonFromNumber(static_cast<std::uint32_t>(find.Int(0)))
      .value_or(policy::Reason::kGrantUsed);
}

Status SiteStore::AddRun(const JobId& job, const DatasetAlias& dataset, WallTime now) {
  ASSIGN_OR_RETURN(Statement add, db_->Prepare("INSERT OR IGNORE INTO run VALUES (?, ?, ?)"));
  return add.Bind(1, job.text()).Bind(2, dataset.text()).Bind(3, Seconds(now)).Run();
}

StatusOr<std::uint64_t> SiteStore::RunsSince(const DatasetAlias& dataset, WallTime since,
                                             const JobId& job) {
  ASSIGN_OR_RETURN(const std::optional<WallTime> spent, SpentAt(dataset));
  if (spent && *spent >= since) {
    return kAllRuns;
  }
  ASSIGN_OR_RETURN(
      Statement count,
      db_->Prepare("SELECT count(*) FROM run WHERE dataset = ? AND at >= ? AND job <> ?"));
  count.Bind(1, dataset.text()).Bind(2, Seconds(since)).Bind(3, job.text());
  ASSIGN_OR_RETURN(const bool row, count.Step());
  DOMICILE_CHECK(row);
  return static_cast<std::uint64_t>(count.Int(0));
}

Status SiteStore::SetTakenModel(const JobRow& before, const Digest& model) {
  // The first model is where counting begins: commits known by then lie after it.
  const bool is_first = model == before.base_model;
  ASSIGN_OR_RETURN(Statement set,
                   db_->Prepare("UPDATE job SET last_model = ?2, train_commits = train_commits - "
                                "?3, statistics = statistics AND NOT ?4 WHERE id = ?1"));
  return set.Bind(1, before.job.text())
      .Bind(2, ByteSpan(model.bytes))
      .Bind(3, static_cast<std::int64_t>(is_first ? 0 : before.train_commits))
      .Bind(4, static_cast<std::int64_t>(!is_first && before.statistics_committed ? 1 : 0))
      .Run();
}

StatusOr<bool> SiteStore::AddCommit(const PhaseId& phase, std::uint64_t leaf) {
  ASSIGN_OR_RETURN(Statement find,
                   db_->Prepare("SELECT leaf FROM commit_seen WHERE job = ? AND round = ? AND "
                                "phase = ?"));
  BindPhase(find, 1, phase);
  ASSIGN_OR_RETURN(const bool known, find.Step());
  if (known) {
    return static_cast<std::uint64_t>(find.Int(0)) == leaf
               ? StatusOr<bool>(false)
               : Error(StatusCode::kDataLoss, "the aggregator's log commits a phase twice");
  }
  ASSIGN_OR_RETURN(Statement add, db_->Prepare("INSERT INTO commit_seen VALUES (?, ?, ?, ?)"));
  RETURN_IF_ERROR(BindPhase(add, 1, phase).Bind(4, static_cast<std::int64_t>(leaf)).Run());
  return true;
}

StatusOr<bool> SiteStore::IsClosed(const PhaseId& phase) {
  ASSIGN_OR_RETURN(
      Statement find,
      db_->Prepare("SELECT 1 FROM commit_seen WHERE job = ?1 AND round = ?2 AND phase = ?3 "
                   "UNION ALL SELECT 1 FROM release WHERE job = ?1 AND round = ?2 AND phase = ?3 "
                   "AND NOT EXISTS (SELECT 1 FROM outbox WHERE job = ?1 AND round = ?2 AND "
                   "phase = ?3)"));
  BindPhase(find, 1, phase);
  return find.Step();
}

StatusOr<std::optional<OutboxRow>> SiteStore::FindOutbox(const PhaseId& phase) {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare(std::string(kOutboxColumns) +
                                                "WHERE job = ? AND round = ? AND phase = ?"));
  BindPhase(find, 1, phase);
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(OutboxRow row, ReadOutbox(find));
  return std::optional(std::move(row));
}

StatusOr<std::vector<OutboxRow>> SiteStore::Outbox() {
  std::vector<OutboxRow> rows;
  ASSIGN_OR_RETURN(Statement all,
                   db_->Prepare(std::string(kOutboxColumns) + "ORDER BY job, round, phase"));
  while (true) {
    ASSIGN_OR_RETURN(const bool found, all.Step());
    if (!found) {
      return rows;
    }
    ASSIGN_OR_RETURN(rows.emplace_back(), ReadOutbox(all));
  }
}

Status SiteStore::AddOutbox(const OutboxRow& row) {
  ASSIGN_OR_RETURN(Statement add,
                   db_->Prepare("INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return BindPhase(add, 1, row.phase)
      .Bind(4, ByteSpan(row.digest.bytes))
      .Bind(5, static_cast<std::int64_t>(row.size_bytes))
      .Bind(6, ByteSpan(row.base_model.bytes))
      .Bind(7, ByteSpan(row.policy.bytes))
      .Bind(8, static_cast<std::int64_t>(row.leaf))
      .Bind(9, static_cast<std::int64_t>(row.numbers))
      .Bind(10, static_cast<std::int64_t>(row.records))
      .Run();
}

Status SiteStore::RemoveOutbox(const PhaseId& phase) {
  ASSIGN_OR_RETURN(Statement remove,
                   db_->Prepare("DELETE FROM outbox WHERE job = ? AND round = ? AND phase = ?"));
  return BindPhase(remove, 1, phase).Run();
}

std::string SiteStore::OutboxPath(const Digest& digest) const {
  return JoinPath(JoinPath(folder_, "outbox"), PrintHex(digest));
}

StatusOr<double> SiteStore::ReleasedPerRecord(const DatasetAlias& dataset, const PhaseId& phase) {
  ASSIGN_OR_RETURN(const std::optional<WallTime> spent, SpentAt(dataset));
  if (spent) {
    return kAllSpent;
  }
  ASSIGN_OR_RETURN(Statement sum,
                   db_->Prepare("SELECT coalesce(sum(charge), 0) FROM release WHERE dataset = ?1 "
                                "AND NOT (job = ?2 AND round = ?3 AND phase = ?4)"));
  sum.Bind(1, dataset.text());
  BindPhase(sum, 2, phase);
  ASSIGN_OR_RETURN(const bool row, sum.Step());
  DOMICILE_CHECK(row);
  return UpTo(sum.Int(0), kChargeUnit);
}

StatusOr<double> SiteStore::EpsilonSpent(const DatasetAlias& dataset, std::optional<WallTime> since,
                                         const JobId& job) {
  ASSIGN_OR_RETURN(const std::optional<WallTime> spent, SpentAt(dataset));
  if (spent && (!since || *spent >= *since)) {
    return kAllSpent;
  }
  ASSIGN_OR_RETURN(Statement sum,
                   db_->Prepare("SELECT coalesce(sum(epsilon_micro), 0) FROM release WHERE "
                                "dataset = ? AND job <> ? AND at >= ?"));
  sum.Bind(1, dataset.text())
      .Bind(2, job.text())
      .Bind(3, since ? Seconds(*since) : std::numeric_limits<std::int64_t>::min());
  ASSIGN_OR_RETURN(const bool row, sum.Step());
  DOMICILE_CHECK(row);
  return UpTo(sum.Int(0), kMicro);
}

StatusOr<std::uint64_t> SiteStore::EpsilonOfJob(const JobId& job) {
  ASSIGN_OR_RETURN(
      Statement sum,
      db_->Prepare("SELECT coalesce(sum(epsilon_micro), 0) FROM release WHERE job = ?"));
  sum.Bind(1, job.text());
  ASSIGN_OR_RETURN(const bool row, sum.Step());
  DOMICILE_CHECK(row);
  return static_cast<std::uint64_t>(sum.Int(0));
}

Status SiteStore::AddRelease(const ReleaseRow& row) {
  ASSIGN_OR_RETURN(Statement add,
                   db_->Prepare("INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  add.Bind(1, row.dataset.text());
  return BindPhase(add, 2, row.phase)
      .Bind(5, ByteSpan(row.transfer.bytes))
      .Bind(6, ByteSpan(row.dataset_commitment.bytes))
      .Bind(7, static_cast<std::int64_t>(row.numbers))
      .Bind(8, ChargeOf(row.numbers, row.records))
      .Bind(9, static_cast<std::int64_t>(row.bytes))
      .Bind(10, static_cast<std::int64_t>(row.epsilon_micro))
      .Bind(11, Seconds(row.at))
      .Run();
}

StatusOr<std::optional<StatisticsRow>> SiteStore::FindStatistics(const Digest& dataset_commitment,
                                                                 const Digest& columns) {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT question, numbers, records FROM statistics "
                                                "WHERE commitment = ? AND columns = ?"));
  find.Bind(1, ByteSpan(dataset_commitment.bytes)).Bind(2, ByteSpan(columns.bytes));
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return std::nullopt;
  }
  StatisticsRow row;
  ASSIGN_OR_RETURN(row.question, DigestFromBytes(find.Blob(0)));
  row.numbers = find.Blob(1);
  row.rows = static_cast<std::uint64_t>(find.Int(2));
  return row;
}

Status SiteStore::AddStatistics(const Digest& dataset_commitment, const Digest& columns,
                                const StatisticsRow& row) {
  ASSIGN_OR_RETURN(Statement add, db_->Prepare("INSERT INTO statistics VALUES (?, ?, ?, ?, ?)"));
  return add.Bind(1, ByteSpan(dataset_commitment.bytes))
      .Bind(2, ByteSpan(columns.bytes))
      .Bind(3, ByteSpan(row.question.bytes))
      .Bind(4, ByteSpan(row.numbers))
      .Bind(5, static_cast<std::int64_t>(row.rows))
      .Run();
}

std::string SiteStore::ModelPath(const Digest& digest) const {
  return JoinPath(JoinPath(folder_, "models"), PrintHex(digest));
}

Status SiteStore::WriteModel(const Digest& digest, ByteSpan bytes) {
  const std::string path = ModelPath(digest);
  return FileExists(path) ? OkStatus() : WriteFileDurably(path, bytes);
}

StatusOr<std::string> SiteStore::ReadModel(const Digest& digest) {
  return ReadFile(ModelPath(digest), kLargestModel);
}

Status SiteStore::RemoveModel(const Digest& digest) {
  ASSIGN_OR_RETURN(Statement named, db_->Prepare("SELECT 1 FROM job WHERE last_model = ?"));
  named.Bind(1, ByteSpan(digest.bytes));
  ASSIGN_OR_RETURN(const bool is_named, named.Step());
  return is_named ? OkStatus() : RemoveFile(ModelPath(digest));
}

}  // namespace domicile::site_agent
