// The ledger against the log: what the log says has left counts, whatever the ledger says.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/event.h"
#include "audit/records.h"
#include "audit/recovery.h"
#include "site_agent/egress/site_store.h"

namespace domicile::site_agent {

namespace {

// The leaves of one type, found by their bytes: a frame writes its type in one way only.
StatusOr<std::vector<audit::Leaf>> LeavesOf(Database& db, std::string_view type) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT bytes FROM log_leaf WHERE instr(bytes, ?) > 0 ORDER BY seq"));
  find.Bind(1, AsBytes("\"" + std::string(type) + "\""));
  std::vector<audit::Leaf> leaves;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) {
      return leaves;
    }
    const Bytes bytes = find.Blob(0);
    ASSIGN_OR_RETURN(audit::Leaf leaf, audit::ParseLeaf(AsText(bytes)));
    leaves.push_back(std::move(leaf));
  }
}

contracts::PhaseKind KindNamed(std::string_view name) {
  for (const contracts::PhaseKind kind :
       {contracts::PhaseKind::kStatistics, contracts::PhaseKind::kTrain,
        contracts::PhaseKind::kEvaluate}) {
    if (contracts::PhaseName(kind) == name) {
      return kind;
    }
  }
  return contracts::PhaseKind::kNone;
}

StatusOr<bool> HasRow(Database& db, std::string_view query, const PhaseId& phase,
                      const Digest* transfer) {
  ASSIGN_OR_RETURN(Statement find, db.Prepare(query));
  find.Bind(1, phase.job.text());
  if (transfer != nullptr) {
    find.Bind(2, static_cast<std::int64_t>(phase.round))
        .Bind(3, static_cast<std::int64_t>(phase.phase))
        .Bind(4, ByteSpan(transfer->bytes));
  }
  return find.Step();
}

// Releases of the log that the ledger lacks.
StatusOr<std::uint64_t> RestoreReleases(SiteStore& store) {
  std::uint64_t restored = 0;
  Database& db = store.Db();
  ASSIGN_OR_RETURN(const std::vector<audit::Leaf> leaves, LeavesOf(db, "egress.decided"));
  for (const audit::Leaf& leaf : leaves) {
    if (leaf.event.type() != audit::EventType::kEgressDecided) {
      continue;
    }
    ASSIGN_OR_RETURN(const audit::EgressDecided release, audit::ReadEgressDecided(leaf.event));
    const PhaseId phase{
        .job = release.key.job, .round = release.key.round, .phase = KindNamed(release.key.phase)};
    ASSIGN_OR_RETURN(const bool known,
                     HasRow(db,
                            "SELECT 1 FROM release WHERE job = ? AND round = ? AND phase = ? AND "
                            "transfer = ?",
                            phase, &release.transfer));
    if (known) {
      continue;
    }
    ++restored;
    ASSIGN_OR_RETURN(Statement remove, db.Prepare("DELETE FROM release WHERE job = ? AND "
                                                  "round = ? AND phase = ?"));
    RETURN_IF_ERROR(remove.Bind(1, phase.job.text())
                        .Bind(2, static_cast<std::int64_t>(phase.round))
                        .Bind(3, static_cast<std::int64_t>(phase.phase))
                        .Run());
    RETURN_IF_ERROR(store.AddRelease({.dataset = release.dataset,
                                      .dataset_commitment = {},
                                      .phase = phase,
                                      .transfer = release.transfer,
                                      .numbers = release.numbers,
                                      .records = 1,
                                      .bytes = release.bytes,
                                      .epsilon_micro = release.epsilon_micro,
                                      .at = leaf.frame.time}));
  }
  return restored;
}

// Likewise runs.
StatusOr<std::uint64_t> RestoreRuns(SiteStore& store) {
  std::uint64_t restored = 0;
  ASSIGN_OR_RETURN(const std::vector<audit::Leaf> leaves, LeavesOf(store.Db(), "data.opened"));
  for (const audit::Leaf& leaf : leaves) {
    if (leaf.event.type() != audit::EventType::kDataOpened) {
      continue;
    }
    const JobId job = leaf.event.Phase().job;
    ASSIGN_OR_RETURN(const bool known, HasRow(store.Db(), "SELECT 1 FROM run WHERE job = ?",
                                              {.job = job, .round = 0, .phase = {}}, nullptr));
    if (known) {
      continue;
    }
    ++restored;
    ASSIGN_OR_RETURN(const DatasetAlias dataset, DatasetAlias::Parse(leaf.event.Text("dataset")));
    RETURN_IF_ERROR(store.AddRun(job, dataset, leaf.frame.time));
  }
  return restored;
}

// Likewise datasets that a recovery has spent.
StatusOr<std::uint64_t> RestoreSpent(SiteStore& store) {
  std::uint64_t restored = 0;
  ASSIGN_OR_RETURN(const std::vector<audit::Leaf> leaves, LeavesOf(store.Db(), "log.recovered"));
  for (const audit::Leaf& leaf : leaves) {
    if (leaf.event.type() != audit::EventType::kLogRecovered) {
      continue;
    }
    ASSIGN_OR_RETURN(const audit::LogRecovered record, audit::ReadLogRecovered(leaf.event));
    for (const DatasetAlias& dataset : record.datasets) {
      ASSIGN_OR_RETURN(const bool is_new, store.Spend(dataset, leaf.frame.time));
      restored += is_new ? 1 : 0;
    }
  }
  return restored;
}

}  // namespace

StatusOr<std::uint64_t> SiteStore::SpendWhatTheLogSays() {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_));
  ASSIGN_OR_RETURN(const std::uint64_t releases, RestoreReleases(*this));
  ASSIGN_OR_RETURN(const std::uint64_t runs, RestoreRuns(*this));
  ASSIGN_OR_RETURN(const std::uint64_t spent, RestoreSpent(*this));
  RETURN_IF_ERROR(transaction.Commit());
  return releases + runs + spent;
}

}  // namespace domicile::site_agent
