// A log that is not the one others remember: found, and gone on from.
#include <algorithm>
#include <set>
#include <utility>

#include "site_agent/egress/books.h"

namespace domicile::site_agent {

namespace {

// No agent was started more often; an aggregator that says so cannot use up the numbers.
constexpr std::uint64_t kMostInstances = std::uint64_t{1} << 50U;

Status Behind(const Status& why) {
  return Annotate(why,
                  "this site's own log is not the one that was witnessed (a restored backup?): "
                  "nothing is sent; restore the newest copy, or stop the agent and run `domicile "
                  "site recover`");
}

}  // namespace

Status Books::CheckRemembered(const std::string& note, std::uint64_t instance) {
  if (note.empty()) {
    return OkStatus();
  }
  const StatusOr<crypto::Checkpoint> remembered = crypto::OpenCheckpoint(note, key_);
  if (!remembered.ok()) {
    return Error(StatusCode::kUnauthenticated,
                 "the aggregator remembers a head of this site's log that this site's key has not "
                 "signed; nothing is sent to it");
  }
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const std::optional<FoundBehind> known, store_.Behind());
  Status contained = log_->CheckRemembered(*remembered);
  if (contained.ok()) {
    // Answered: the aggregator has taken the entry if what it remembers covers it.
    return known && known->leaf && remembered->size > *known->leaf ? store_.ForgetBehind()
                                                                   : OkStatus();
  }
  if (contained.code() != StatusCode::kDataLoss) {
    return contained;
  }
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
  RETURN_IF_ERROR(store_.SetBehind({.note = note, .instance = std::min(instance, kMostInstances)}));
  RETURN_IF_ERROR(transaction.Commit());
  return Behind(contained);
}

Status Books::CheckNotBehind() {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const std::optional<FoundBehind> known, store_.Behind());
  if (!known || known->leaf) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const crypto::Checkpoint remembered, crypto::OpenCheckpoint(known->note, key_));
  const Status contained = log_->CheckRemembered(remembered);
  return contained.code() == StatusCode::kDataLoss ? Behind(contained) : contained;
}

StatusOr<audit::LogRecovered> Books::RecoveryNow(const RecoveryOrder& order) {
  ASSIGN_OR_RETURN(const std::optional<FoundBehind> behind, store_.Behind());
  if (!behind) {
    return Error(StatusCode::kFailedPrecondition,
                 "nothing to recover: nobody is known to remember another log of this site; start "
                 "the agent, which asks the aggregator");
  }
  if (behind->leaf) {
    return Error(StatusCode::kFailedPrecondition,
                 "recovered already: start the agent, which tells the aggregator");
  }
  ASSIGN_OR_RETURN(const crypto::Checkpoint remembered, crypto::OpenCheckpoint(behind->note, key_));
  if (log_->CheckRemembered(remembered).ok()) {
    return Error(StatusCode::kFailedPrecondition,
                 "nothing to recover: this log contains the head that is remembered; start the "
                 "agent");
  }
  audit::LogRecovered record{.operator_name = order.operator_name,
                             .instance = std::max(instance_, behind->instance + 1),
                             .size = 0,
                             .root = {},
                             .kept = 0,
                             .remembered_size = remembered.size,
                             .remembered_root = remembered.root,
                             .datasets = {}};
  ASSIGN_OR_RETURN(record.size, log_->Size());
  ASSIGN_OR_RETURN(record.root, log_->RootAt(record.size));
  ASSIGN_OR_RETURN(const std::uint64_t witnessed, store_.Witnessed());
  record.kept = std::min({witnessed, record.size, remembered.size});
  ASSIGN_OR_RETURN(const std::vector<DatasetAlias> used, store_.LedgerDatasets());
  std::set<DatasetAlias> datasets(used.begin(), used.end());
  datasets.insert(order.datasets.begin(), order.datasets.end());
  record.datasets.assign(datasets.begin(), datasets.end());
  return record;
}

StatusOr<audit::LogRecovered> Books::PlanRecovery(const RecoveryOrder& order) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(audit::LogRecovered record, RecoveryNow(order));
  RETURN_IF_ERROR(ToEvent(record).status());
  return record;
}

StatusOr<audit::LogRecovered> Books::Recover(const RecoveryOrder& order) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
  ASSIGN_OR_RETURN(audit::LogRecovered record, RecoveryNow(order));
  ASSIGN_OR_RETURN(std::optional<FoundBehind> behind, store_.Behind());
  ASSIGN_OR_RETURN(const audit::Event event, ToEvent(record));
  ASSIGN_OR_RETURN(behind->leaf, log_->Append(event));
  RETURN_IF_ERROR(store_.SetBehind(*behind));
  for (const DatasetAlias& dataset : record.datasets) {
    RETURN_IF_ERROR(store_.Spend(dataset, clock_.Now()).status());
  }
  RETURN_IF_ERROR(store_.RaiseInstanceTo(record.instance));
  RETURN_IF_ERROR(store_.ForgetOutbox());
  RETURN_IF_ERROR(transaction.Commit());
  return record;
}

StatusOr<std::optional<audit::RecoveryClaim>> Books::RecoveryToShow() {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const std::optional<FoundBehind> behind, store_.Behind());
  if (!behind || !behind->leaf) {
    return std::optional<audit::RecoveryClaim>();
  }
  ASSIGN_OR_RETURN(const crypto::Checkpoint remembered, crypto::OpenCheckpoint(behind->note, key_));
  ASSIGN_OR_RETURN(audit::ProvenLeaf entry, log_->LeafWithProof(*behind->leaf));
  audit::RecoveryClaim claim{.index = entry.index,
                             .leaf = std::move(entry.leaf),
                             .proof = std::move(entry.proof),
                             .head_note = std::move(entry.head.note),
                             .root_then = {},
                             .consistency = {}};
  if (claim.index >= remembered.size) {
    ASSIGN_OR_RETURN(claim.root_then, log_->RootAt(remembered.size));
    ASSIGN_OR_RETURN(claim.consistency,
                     log_->ConsistencyProof(remembered.size, entry.head.checkpoint.size));
  }
  return std::optional(std::move(claim));
}

}  // namespace domicile::site_agent
