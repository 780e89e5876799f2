// What the aggregator keeps on disk: one SQLite file (jobs, their events, sites, and the log) and
// one model file per committed round, named by its digest. No update, no sum: those live in memory
// only.
//
// Kill at any instant: a model file is durable before the transaction that names it; files that no
// row names are removed at start.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "contracts/plan.h"

namespace domicile::aggregator {

struct JobRow {
  JobId job;
  std::string plan;  // canonical text
  Digest base_model;
  std::int64_t submitted_unix_seconds = 0;
  std::vector<std::string> events;  // canonical JSON, in order
};

struct ModelRow {
  Digest digest;
  std::uint64_t size_bytes = 0;
};

struct SiteRow {
  std::uint64_t instance = 0;
  std::string statement;
};

struct CommitRow {
  RoundNumber round = 0;
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  Epoch epoch;
  std::uint64_t leaf = 0;
  std::string metrics;
};

// One thread at a time. The database is public to the log of the same file: audit::Log borrows it.
class Store {
 public:
  // Opens or makes `folder`, locks it against a second aggregator, removes what a crash left, and
  // raises the number of starts. Errors: those of base/file.h and base/sqlite.h.
  static StatusOr<Store> Open(const std::string& folder);

  Database& Db() { return *db_; }
  std::uint64_t Starts() const { return starts_; }

  // Rows. Within the caller's transaction.
  Status AddJob(const JobRow& row);
  Status AddEvent(const JobId& job, std::string_view event);
  StatusOr<std::vector<JobRow>> Jobs();
  // The model after a committed round (0: the first one).
  Status AddModel(const JobId& job, RoundNumber round, const ModelRow& model);
  // The last one at or before `round`; empty if none.
  StatusOr<std::optional<ModelRow>> ModelAfter(const JobId& job, RoundNumber round);

  // What is known of every site that ever connected: the greatest instance number of its agent, and
  // its last policy statement, under which its contributions to models were made.
  StatusOr<std::map<SiteId, SiteRow>> Sites();
  Status SetSite(const SiteId& site, const SiteRow& row);
  // The entry by which the site's log was last recovered: its leaf hash; zero: never.
  StatusOr<Digest> LastRecovery(const SiteId& site);
  Status SetLastRecovery(const SiteId& site, const Digest& leaf_hash);

  // How much of the deadline that runs for a job has passed; 0 if none ran.
  Status SetWaited(const JobId& job, std::chrono::seconds waited);
  StatusOr<std::chrono::seconds> Waited(const JobId& job);

  // The commit of a phase: its leaf, and the pooled metrics as canonical JSON.
  Status AddCommit(const JobId& job, const CommitRow& row);
  StatusOr<std::vector<CommitRow>> Commits(const JobId& job);

  // Writes a model file durably, before the transaction that names it; the same bytes twice are
  // fine.
  Status WriteModel(const Digest& digest, ByteSpan bytes);
  std::string ModelPath(const Digest& digest) const;

 private:
  Store(FileHandle lock, std::unique_ptr<Database> db, std::string folder)
      : lock_(std::move(lock)), db_(std::move(db)), folder_(std::move(folder)) {}
  Status RaiseStarts();
  Status RemoveOrphans();

  FileHandle lock_;
  std::unique_ptr<Database> db_;  // by pointer: the log keeps its address
  std::string folder_;
  std::uint64_t starts_ = 0;
};

}  // namespace domicile::aggregator
