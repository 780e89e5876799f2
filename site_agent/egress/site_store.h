// What an agent keeps on disk: one SQLite file (its starts, the outbox's list, the ledger, what it
// has seen of jobs, and the log) and a folder with the bytes of updates that wait for their
// outcome.
//
// An update file is durable before the transaction that names it; a file that no row names is
// removed at start: nothing of it had left. Guard with one mutex; the log borrows the database.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "contracts/plan.h"
#include "policy/reason.h"

namespace domicile::site_agent {

// One phase of one round of one job.
struct PhaseId {
  JobId job;
  RoundNumber round = 0;
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  friend bool operator==(const PhaseId&, const PhaseId&) = default;
  friend auto operator<=>(const PhaseId&, const PhaseId&) = default;
};

// An update that the gate has let through: these bytes, and no others, may be sent.
struct OutboxRow {
  PhaseId phase;
  Digest digest;
  std::uint64_t size_bytes = 0;
  Digest base_model;
  Digest policy;           // effective, under which it was decided
  std::uint64_t leaf = 0;  // `egress.decided`
  std::uint64_t numbers = 0;
  std::uint64_t records = 0;
};

// A job this site was offered.
struct JobRow {
  JobId job;
  std::string plan;  // exact text
  Digest base_model;
  std::uint64_t base_model_bytes = 0;
  Digest last_model;  // taken in last, its file is in the models folder; zero: none yet
  std::uint32_t train_commits = 0;  // committed since that model, each leaf verified
  bool statistics_committed = false;
  Digest committed_model;            // that the last verified commit names; zero: none yet
  std::uint64_t committed_leaf = 0;  // of that commit in the aggregator's log
};

// What has left about a dataset in one phase.
struct ReleaseRow {
  DatasetAlias dataset;
  Digest dataset_commitment;  // which version
  PhaseId phase;
  Digest transfer;
  std::uint64_t numbers = 0;
  std::uint64_t records = 0;  // behind them
  std::uint64_t bytes = 0;
  std::uint64_t epsilon_micro = 0;  // that it adds to the dataset's, in millionths, rounded up
  WallTime at = {};
};

// Somebody remembers a head of this log that it does not contain.
struct FoundBehind {
  std::string note;                        // the head, signed with this site's log key
  std::uint64_t instance = 0;              // the greatest that was seen of this agent
  std::optional<std::uint64_t> leaf = {};  // the `log.recovered` that answers it
};

// Statistics of one dataset version and column set, once released.
struct StatisticsRow {
  Digest question;  // of its wording: participants, inputs, grid
  Bytes numbers;    // the section's encoded integers
  std::uint64_t rows = 0;
  friend bool operator==(const StatisticsRow&, const StatisticsRow&) = default;
};

// One thread at a time.
class SiteStore {
 public:
  // Opens or makes `folder`, locks it against a second agent, removes what a crash left, raises the
  // instance number. Errors: those of base/file.h and base/sqlite.h.
  static StatusOr<SiteStore> Open(const std::string& folder);

  Database& Db() { return *db_; }
  std::uint64_t Instance() const { return instance_; }

  // The greatest number of starts seen of the aggregator; only grows.
  StatusOr<std::uint64_t> AggregatorStarts();
  Status SetAggregatorStarts(std::uint64_t starts);

  // ---- jobs ----
  StatusOr<std::optional<JobRow>> FindJob(const JobId& job);
  Status PutJob(const JobRow& row);
  // For good: a person denied the job (kApprovalDenied), or its run is over (kGrantUsed). No grant
  // of it counts after that. False if it was closed already.
  StatusOr<bool> CloseJob(const JobId& job, policy::Reason why);
  StatusOr<policy::Reason> WhyClosed(const JobId& job);  // kNone: it is not
  // Counts the first data task of a job as a run, once.
  Status AddRun(const JobId& job, const DatasetAlias& dataset, WallTime now);
  // Runs of a dataset begun since `since`, other than of `job`.
  StatusOr<std::uint64_t> RunsSince(const DatasetAlias& dataset, WallTime since, const JobId& job);
  // The model taken in becomes the one that the next is measured from; `before` is what was known
  // when it was measured. Commits that came in meanwhile are kept.
  Status SetTakenModel(const JobRow& before, const Digest& model);
  // Verified outcomes, so that each is applied once. False if it was known. Errors: kDataLoss, the
  // phase was committed before by another leaf.
  StatusOr<bool> AddCommit(const PhaseId& phase, std::uint64_t leaf);
  // Whether nothing may be made for this phase any more: its commit is known, or an update was let
  // through for it once and is not in the outbox now. The gate runs once.
  StatusOr<bool> IsClosed(const PhaseId& phase);

  // ---- outbox ----
  StatusOr<std::optional<OutboxRow>> FindOutbox(const PhaseId& phase);
  StatusOr<std::vector<OutboxRow>> Outbox();
  Status AddOutbox(const OutboxRow& row);
  Status RemoveOutbox(const PhaseId& phase);
  std::string OutboxPath(const Digest& digest) const;

  // ---- ledger: what has left about a dataset, over all jobs ----
  // Sum over releases of numbers / records behind them, other than of `phase` itself; all versions
  // of the dataset together, since they share most of their records. Never less than the true sum.
  // As large as a double gets for a dataset that is spent.
  StatusOr<double> ReleasedPerRecord(const DatasetAlias& dataset, const PhaseId& phase);
  // The epsilon that other jobs than `job` have spent of a dataset since then (unset: ever),
  // rounded up; as large as a double gets if it was spent since.
  StatusOr<double> EpsilonSpent(const DatasetAlias& dataset, std::optional<WallTime> since,
                                const JobId& job);
  // What the releases of a job have added so far, in millionths.
  StatusOr<std::uint64_t> EpsilonOfJob(const JobId& job);
  Status AddRelease(const ReleaseRow& row);
  // Puts into the ledger what the log's leaves say has left or was run and the ledger does not:
  // as if a single record were behind it. Returns how many entries that were; in a transaction of
  // its own. For the start: a ledger that is older than the log was restored, or somebody changed
  // it.
  StatusOr<std::uint64_t> SpendWhatTheLogSays();
  StatusOr<std::optional<StatisticsRow>> FindStatistics(const Digest& dataset_commitment,
                                                        const Digest& columns);
  Status AddStatistics(const Digest& dataset_commitment, const Digest& columns,
                       const StatisticsRow& row);

  // ---- recovery (recovery_rows.cc), docs/formats/log.md ----
  StatusOr<std::optional<FoundBehind>> Behind();
  Status SetBehind(const FoundBehind& found);
  Status ForgetBehind();
  // So many entries of this log are known to have been witnessed; only grows.
  StatusOr<std::uint64_t> Witnessed();
  Status SetWitnessed(std::uint64_t size);
  // A dataset counts as spent from now on, in all its versions. False if it was already.
  StatusOr<bool> Spend(const DatasetAlias& dataset, WallTime now);
  StatusOr<std::optional<WallTime>> SpentAt(const DatasetAlias& dataset);
  // All that the ledger knows.
  StatusOr<std::vector<DatasetAlias>> LedgerDatasets();
  // The instance number is at least this from now on; the next start is above it.
  Status RaiseInstanceTo(std::uint64_t instance);
  // Takes all updates out of the outbox; the next start removes their bytes.
  Status ForgetOutbox();

  // ---- models taken in ----
  Status WriteModel(const Digest& digest, ByteSpan bytes);
  StatusOr<std::string> ReadModel(const Digest& digest);
  // Unless a job still names it.
  Status RemoveModel(const Digest& digest);

 private:
  SiteStore(FileHandle lock, std::unique_ptr<Database> db, std::string folder)
      : lock_(std::move(lock)), db_(std::move(db)), folder_(std::move(folder)) {}
  Status RaiseInstance();
  Status RemoveOrphans();
  std::string ModelPath(const Digest& digest) const;

  FileHandle lock_;
  std::unique_ptr<Database> db_;  // by pointer: the log keeps its address
  std::string folder_;
  std::uint64_t instance_ = 0;
};

}  // namespace domicile::site_agent
