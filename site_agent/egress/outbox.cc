#include "site_agent/egress/outbox.h"

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/log.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// One transaction's rows; `refused` says why there is none, if it is not the disk or the log.
StatusOr<audit::Event> PutRows(SiteStore& store, std::uint64_t leaf, const Release& release,
                               const std::stop_token& stop, Reason& refused) {
  const auto refuse = [&refused](Reason why) {
    refused = why;
    return Error(StatusCode::kFailedPrecondition, policy::Code(why));
  };
  // Asked with the books held: the end of a job stops the work first and clears the outbox then, so
  // that no row of a job that has ended can come in afterwards.
  if (stop.stop_requested()) {
    return refuse(Reason::kCancelled);
  }
  ASSIGN_OR_RETURN(const bool closed, store.IsClosed(release.row.phase));
  if (closed) {
    return refuse(Reason::kStaleRound);
  }
  OutboxRow row = release.row;
  row.leaf = leaf;
  RETURN_IF_ERROR(store.AddOutbox(row));
  // The same statistics again tell nothing new, and are charged once.
  std::uint64_t charged = row.numbers;
  if (release.question) {
    const StatusOr<bool> is_new = KeepAnswer(store, *release.question, release.answer, row.records);
    if (is_new.status().code() == StatusCode::kFailedPrecondition) {
      return refuse(Reason::kStatDifference);
    }
    RETURN_IF_ERROR(is_new.status());
    charged = *is_new ? charged : 0;
  }
  // The first release of a run is charged all that the run may spend; the others add nothing.
  audit::EgressDecided decided = release.decided;
  ASSIGN_OR_RETURN(const std::uint64_t of_job, store.EpsilonOfJob(row.phase.job));
  decided.epsilon_micro -= std::min(decided.epsilon_micro, of_job);
  RETURN_IF_ERROR(store.AddRelease({.dataset = release.decided.dataset,
                                    .dataset_commitment = release.dataset_commitment,
                                    .phase = row.phase,
                                    .transfer = row.digest,
                                    .numbers = charged,
                                    .records = row.records,
                                    .bytes = row.size_bytes,
                                    .epsilon_micro = decided.epsilon_micro,
                                    .at = release.decided_at}));
  return ToEvent(decided);
}

// The outcome of an update: its row goes, in the transaction with the leaf that says it.
StatusOr<audit::Event> Settle(SiteStore& store, const OutboxRow& row, const audit::PhaseKey& key,
                              Reason reason, std::optional<std::uint64_t> commit_leaf) {
  RETURN_IF_ERROR(store.RemoveOutbox(row.phase));
  audit::EventBuilder leaf(reason == Reason::kNone ? audit::EventType::kUpdateCounted
                                                   : audit::EventType::kUpdateNotCounted);
  leaf.Phase(key).Set("digest", row.digest);
  if (commit_leaf) {
    leaf.Set("commit_seq", *commit_leaf);
  }
  if (reason != Reason::kNone) {
    leaf.Set("reason", std::string(policy::Code(reason)));
  }
  return leaf.Build();
}

Status RemoveBytes(Books& books, const OutboxRow& row) {
  return RemoveFile(books.With([&](SiteStore& store) { return store.OutboxPath(row.digest); }));
}

Status ApplyCommit(SiteStore& store, const PhaseId& phase, std::uint64_t leaf_index,
                   const audit::PhaseCommitted& commit) {
  ASSIGN_OR_RETURN(std::optional<JobRow> job, store.FindJob(phase.job));
  ASSIGN_OR_RETURN(const bool is_new, store.AddCommit(phase, leaf_index));
  if (!job || !is_new) {
    return OkStatus();
  }
  job->train_commits += phase.phase == contracts::PhaseKind::kTrain ? 1 : 0;
  job->statistics_committed =
      job->statistics_committed || phase.phase == contracts::PhaseKind::kStatistics;
  if (job->committed_model.IsZero() || leaf_index >= job->committed_leaf) {
    job->committed_model = commit.model;
    job->committed_leaf = leaf_index;
  }
  return store.PutJob(*job);
}

bool IsCounted(const audit::PhaseCommitted& commit, const SiteId& self, const Digest& digest) {
  return std::any_of(commit.contributors.begin(), commit.contributors.end(),
                     [&](const audit::Contributor& contributor) {
                       return contributor.site == self && contributor.digest == digest;
                     });
}

// A commit beyond the plan would be a step that the next model may be away for nothing.
Status CheckOfPlan(const JobRow& job, const PhaseId& phase) {
  ASSIGN_OR_RETURN(const contracts::Plan plan, contracts::PlanFromText(job.plan));
  const std::vector<contracts::PhaseKind> phases = plan.Phases(phase.round);
  return std::find(phases.begin(), phases.end(), phase.phase) != phases.end()
             ? OkStatus()
             : Error(StatusCode::kDataLoss,
                     "the aggregator committed a phase that is not in the "
                     "plan of job `" +
                         job.job.text() + "`");
}

}  // namespace

Reason StorageReason(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted ? Reason::kDiskFull
                                                         : Reason::kLogUnavailable;
}

audit::PhaseKey LogKey(const PhaseId& phase, const Epoch& epoch) {
  return {.job = phase.job,
          .round = phase.round,
          .phase = std::string(contracts::PhaseName(phase.phase)),
          .epoch = epoch};
}

std::variant<OutboxRow, Reason> PutInOutbox(Books& books, const Release& release, ByteSpan bytes,
                                            const std::stop_token& stop) {
  Reason refused = Reason::kNone;
  // The file first, durably: a row never names bytes that are not there.
  Status stored = WriteFileDurably(
      books.With([&](SiteStore& store) { return store.OutboxPath(release.row.digest); }), bytes);
  OutboxRow row = release.row;
  if (stored.ok()) {
    const StatusOr<std::uint64_t> leaf =
        books.Record([&](SiteStore& store, std::uint64_t next) -> StatusOr<audit::Event> {
          return PutRows(store, next, release, stop, refused);
        });
    stored = leaf.status();
    row.leaf = leaf.ok() ? *leaf : 0;
  }
  if (stored.ok()) {
    return row;
  }
  if (refused != Reason::kNone) {
    RemoveBytes(books, row).IgnoreError();  // else the next start removes it
    return refused;
  }
  LogError("the outbox: " + std::string(Message(stored)));
  return StorageReason(stored);
}

Status SettleCommit(Books& books, const SiteId& self, const PhaseId& phase,
                    std::uint64_t leaf_index, const audit::PhaseCommitted& commit) {
  ASSIGN_OR_RETURN(const std::optional<JobRow> job,
                   books.With([&](SiteStore& store) { return store.FindJob(phase.job); }));
  if (!job) {
    return OkStatus();  // of a job this site has no part in
  }
  RETURN_IF_ERROR(CheckOfPlan(*job, phase));
  // Without an update of this site there is no leaf to write. One cannot come in between the two
  // looks: from the first on the phase is closed.
  RETURN_IF_ERROR(books.With([&](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(const std::optional<OutboxRow> row, store.FindOutbox(phase));
    if (row) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store.Db()));
    RETURN_IF_ERROR(ApplyCommit(store, phase, leaf_index, commit));
    return transaction.Commit();
  }));
  ASSIGN_OR_RETURN(const std::optional<OutboxRow> row,
                   books.With([&](SiteStore& store) { return store.FindOutbox(phase); }));
  if (!row) {
    return OkStatus();
  }
  const Reason reason = IsCounted(commit, self, row->digest) ? Reason::kNone : Reason::kDeadline;
  RETURN_IF_ERROR(books
                      .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                        RETURN_IF_ERROR(ApplyCommit(store, phase, leaf_index, commit));
                        return Settle(store, *row, commit.key, reason, leaf_index);
                      })
                      .status());
  return RemoveBytes(books, *row);
}

Status SettleJobEnd(Books& books, const JobId& job, Reason why) {
  ASSIGN_OR_RETURN(const std::vector<OutboxRow> outbox,
                   books.With([](SiteStore& store) { return store.Outbox(); }));
  for (const OutboxRow& row : outbox) {
    if (row.phase.job != job) {
      continue;
    }
    // Which attempt it was does not matter any more: the job has none left.
    const audit::PhaseKey key = LogKey(row.phase, {.starts = 1, .attempt = 1});
    RETURN_IF_ERROR(books
                        .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                          return Settle(store, row, key, why, std::nullopt);
                        })
                        .status());
    RETURN_IF_ERROR(RemoveBytes(books, row));
  }
  return OkStatus();
}

}  // namespace domicile::site_agent
