#include "aggregator/coordinator/store.h"

#include <array>
#include <set>
#include <utility>

#include "audit/log.h"
#include "contracts/in_force/policy_store.h"

namespace domicile::aggregator {

namespace {

// "DMAG" in ASCII; never changes.
constexpr std::uint32_t kApplicationId = 0x444D4147;

constexpr std::string_view kTables = R"sql(
  CREATE TABLE start (n INTEGER NOT NULL) STRICT;
  INSERT INTO start VALUES (0);
  CREATE TABLE job (
    id TEXT PRIMARY KEY, plan TEXT NOT NULL, base_model BLOB NOT NULL, submitted INTEGER NOT NULL,
    ordinal INTEGER NOT NULL UNIQUE) STRICT, WITHOUT ROWID;
  CREATE TABLE job_event (
    job TEXT NOT NULL REFERENCES job (id), n INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (job, n)) STRICT, WITHOUT ROWID;
  CREATE TABLE model (
    job TEXT NOT NULL REFERENCES job (id), round INTEGER NOT NULL, digest BLOB NOT NULL,
    size INTEGER NOT NULL, PRIMARY KEY (job, round)) STRICT, WITHOUT ROWID;
  CREATE TABLE site (
    id TEXT PRIMARY KEY, instance INTEGER NOT NULL, statement TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE site_recovery (id TEXT PRIMARY KEY, leaf BLOB NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE phase_commit (
    job TEXT NOT NULL REFERENCES job (id), round INTEGER NOT NULL, phase INTEGER NOT NULL,
    starts INTEGER NOT NULL, attempt INTEGER NOT NULL, leaf INTEGER NOT NULL, metrics TEXT NOT NULL,
    PRIMARY KEY (job, round, phase)) STRICT, WITHOUT ROWID;
  CREATE TABLE wait (
    job TEXT PRIMARY KEY REFERENCES job (id), seconds INTEGER NOT NULL) STRICT, WITHOUT ROWID;
)sql";

constexpr std::string_view kModelSuffix = ".safetensors";

}  // namespace

StatusOr<Store> Store::Open(const std::string& folder) {
  RETURN_IF_ERROR(CreateFolders(folder));
  RETURN_IF_ERROR(CreateFolders(JoinPath(folder, "models")));
  ASSIGN_OR_RETURN(FileHandle lock, LockFile(JoinPath(folder, "lock"), "aggregator"));
  ASSIGN_OR_RETURN(Database opened,
                   Database::Open(JoinPath(folder, "aggregator.db"), Database::Mode::kCreate));
  auto db = std::make_unique<Database>(std::move(opened));
  const std::array<std::string_view, 3> migrations = {audit::kLogTables, kTables,
                                                      contracts::kPolicyTables};
  RETURN_IF_ERROR(db->Migrate(kApplicationId, migrations));
  Store store(std::move(lock), std::move(db), folder);
  RETURN_IF_ERROR(store.RaiseStarts());
  RETURN_IF_ERROR(store.RemoveOrphans());
  return store;
}

Status Store::RaiseStarts() {
  ASSIGN_OR_RETURN(Statement raise, db_->Prepare("UPDATE start SET n = n + 1 RETURNING n"));
  ASSIGN_OR_RETURN(const bool row, raise.Step());
  DOMICILE_CHECK(row);
  starts_ = static_cast<std::uint64_t>(raise.Int(0));
  return raise.Run();
}

Status Store::RemoveOrphans() {
  const std::string models = JoinPath(folder_, "models");
  RETURN_IF_ERROR(RemoveTemporaries(models));
  std::set<std::string> named;
  ASSIGN_OR_RETURN(Statement all, db_->Prepare("SELECT DISTINCT digest FROM model"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, all.Step());
    if (!row) {
      break;
    }
    named.insert(PrintHex(all.Blob(0)) + std::string(kModelSuffix));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(models));
  for (const std::string& file : files) {
    if (!named.contains(file)) {
      RETURN_IF_ERROR(RemoveFile(JoinPath(models, file)));
    }
  }
  return OkStatus();
}

Status Store::AddJob(const JobRow& row) {
  ASSIGN_OR_RETURN(Statement add,
                   db_->Prepare("INSERT INTO job SELECT ?, ?, ?, ?, count(*) + 1 FROM job"));
  return add.Bind(1, row.job.text())
      .Bind(2, row.plan)
      .Bind(3, ByteSpan(row.base_model.bytes))
      .Bind(4, row.submitted_unix_seconds)
      .Run();
}

Status Store::AddEvent(const JobId& job, std::string_view event) {
  ASSIGN_OR_RETURN(Statement add,
                   db_->Prepare("INSERT INTO job_event SELECT ?1, coalesce(max(n), 0) + 1, ?2 "
                                "FROM job_event WHERE job = ?1"));
  return add.Bind(1, job.text()).Bind(2, event).Run();
}

StatusOr<std::vector<JobRow>> Store::Jobs() {
  std::vector<JobRow> rows;
  ASSIGN_OR_RETURN(
      Statement jobs,
      db_->Prepare("SELECT id, plan, base_model, submitted FROM job ORDER BY ordinal"));
  ASSIGN_OR_RETURN(Statement events,
                   db_->Prepare("SELECT event FROM job_event WHERE job = ? ORDER BY n"));
  while (true) {
    ASSIGN_OR_RETURN(const bool found, jobs.Step());
    if (!found) {
      return rows;
    }
    JobRow& row = rows.emplace_back();
    ASSIGN_OR_RETURN(row.job, JobId::Parse(jobs.Text(0)));
    row.plan = jobs.Text(1);
    ASSIGN_OR_RETURN(row.base_model, DigestFromBytes(jobs.Blob(2)));
    row.submitted_unix_seconds = jobs.Int(3);
    events.Reset();
    events.Bind(1, row.job.text());
    while (true) {
      ASSIGN_OR_RETURN(const bool more, events.Step());
      if (!more) {
        break;
      }
      row.events.push_back(events.Text(0));
    }
  }
}

Status Store::AddModel(const JobId& job, RoundNumber round, const ModelRow& model) {
  ASSIGN_OR_RETURN(Statement add, db_->Prepare("INSERT OR REPLACE INTO model VALUES (?, ?, ?, ?)"));
  return add.Bind(1, job.text())
      .Bind(2, static_cast<std::int64_t>(round))
      .Bind(3, ByteSpan(model.digest.bytes))
      .Bind(4, static_cast<std::int64_t>(model.size_bytes))
      .Run();
}

StatusOr<std::optional<ModelRow>> Store::ModelAfter(const JobId& job, RoundNumber round) {
  ASSIGN_OR_RETURN(Statement find,
                   db_->Prepare("SELECT digest, size FROM model WHERE job = ? AND round <= ? "
                                "ORDER BY round DESC LIMIT 1"));
  find.Bind(1, job.text()).Bind(2, static_cast<std::int64_t>(round));
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return std::nullopt;
  }
  ModelRow row;
  ASSIGN_OR_RETURN(row.digest, DigestFromBytes(find.Blob(0)));
  row.size_bytes = static_cast<std::uint64_t>(find.Int(1));
  return row;
}

StatusOr<std::map<SiteId, SiteRow>> Store::Sites() {
  std::map<SiteId, SiteRow> sites;
  ASSIGN_OR_RETURN(Statement all, db_->Prepare("SELECT id, instance, statement FROM site"));
  while (true) {
    ASSIGN_OR_RETURN(const bool found, all.Step());
    if (!found) {
      return sites;
    }
    ASSIGN_OR_RETURN(const SiteId site, SiteId::Parse(all.Text(0)));
    sites[site] = {.instance = static_cast<std::uint64_t>(all.Int(1)), .statement = all.Text(2)};
  }
}

Status Store::SetSite(const SiteId& site, const SiteRow& row) {
  ASSIGN_OR_RETURN(Statement set, db_->Prepare("INSERT OR REPLACE INTO site VALUES (?, ?, ?)"));
  return set.Bind(1, site.text())
      .Bind(2, static_cast<std::int64_t>(row.instance))
      .Bind(3, row.statement)
      .Run();
}

StatusOr<Digest> Store::LastRecovery(const SiteId& site) {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT leaf FROM site_recovery WHERE id = ?"));
  find.Bind(1, site.text());
  ASSIGN_OR_RETURN(const bool found, find.Step());
  return found ? DigestFromBytes(find.Blob(0)) : StatusOr<Digest>(Digest{});
}

Status Store::SetLastRecovery(const SiteId& site, const Digest& leaf_hash) {
  ASSIGN_OR_RETURN(Statement set,
                   db_->Prepare("INSERT OR REPLACE INTO site_recovery VALUES (?, ?)"));
  return set.Bind(1, site.text()).Bind(2, ByteSpan(leaf_hash.bytes)).Run();
}

Status Store::SetWaited(const JobId& job, std::chrono::seconds waited) {
  ASSIGN_OR_RETURN(Statement set, db_->Prepare("INSERT OR REPLACE INTO wait VALUES (?, ?)"));
  return set.Bind(1, job.text()).Bind(2, std::int64_t{waited.count()}).Run();
}

StatusOr<std::chrono::seconds> Store::Waited(const JobId& job) {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT seconds FROM wait WHERE job = ?"));
  find.Bind(1, job.text());
  ASSIGN_OR_RETURN(const bool found, find.Step());
  return std::chrono::seconds(found ? find.Int(0) : 0);
}

Status Store::AddCommit(const JobId& job, const CommitRow& row) {
  ASSIGN_OR_RETURN(Statement add,
                   db_->Prepare("INSERT INTO phase_commit VALUES (?, ?, ?, ?, ?, ?, ?)"));
  return add.Bind(1, job.text())
      .Bind(2, static_cast<std::int64_t>(row.round))
      .Bind(3, static_cast<std::int64_t>(row.phase))
      .Bind(4, static_cast<std::int64_t>(row.epoch.starts))
      .Bind(5, static_cast<std::int64_t>(row.epoch.attempt))
      .Bind(6, static_cast<std::int64_t>(row.leaf))
      .Bind(7, row.metrics)
      .Run();
}

StatusOr<std::vector<CommitRow>> Store::Commits(const JobId& job) {
  std::vector<CommitRow> rows;
  ASSIGN_OR_RETURN(Statement all,
                   db_->Prepare("SELECT round, phase, starts, attempt, leaf, metrics "
                                "FROM phase_commit WHERE job = ? ORDER BY round, phase"));
  all.Bind(1, job.text());
  while (true) {
    ASSIGN_OR_RETURN(const bool found, all.Step());
    if (!found) {
      return rows;
    }
    CommitRow& row = rows.emplace_back();
    row.round = static_cast<RoundNumber>(all.Int(0));
    row.phase = static_cast<contracts::PhaseKind>(all.Int(1));
    row.epoch = {.starts = static_cast<std::uint64_t>(all.Int(2)),
                 .attempt = static_cast<std::uint32_t>(all.Int(3))};
    row.leaf = static_cast<std::uint64_t>(all.Int(4));
    row.metrics = all.Text(5);
  }
}

Status Store::WriteModel(const Digest& digest, ByteSpan bytes) {
  const std::string path = ModelPath(digest);
  // A file of that name is whole: it was renamed into place after its bytes were durable.
  return FileExists(path) ? OkStatus() : WriteFileDurably(path, bytes);
}

std::string Store::ModelPath(const Digest& digest) const {
  return JoinPath(JoinPath(folder_, "models"), PrintHex(digest) + std::string(kModelSuffix));
}

}  // namespace domicile::aggregator
