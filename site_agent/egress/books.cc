#include "site_agent/egress/books.h"

#include <algorithm>

#include "audit/event.h"
#include "base/log.h"

namespace domicile::site_agent {

StatusOr<std::unique_ptr<Books>> Books::Open(const std::string& folder,
                                             const crypto::NoteSigner& signer, const Clock& clock,
                                             Random& random) {
  ASSIGN_OR_RETURN(SiteStore store, SiteStore::Open(folder));
  // Not make_unique: the constructor is private.
  std::unique_ptr<Books> books(new Books(std::move(store), signer.Verifier(), clock));
  const MutexLock lock(books->mutex_);
  ASSIGN_OR_RETURN(audit::Log log, audit::Log::Open(books->store_.Db(), signer, clock, random));
  books->log_.emplace(std::move(log));
  ASSIGN_OR_RETURN(const std::uint64_t restored, books->store_.SpendWhatTheLogSays());
  if (restored > 0) {
    LogError("the ledger lacked " + std::to_string(restored) +
             " entries that the log has: they count as spent, as if each told of one record");
    RETURN_IF_ERROR(books->log_
                        ->Append(*audit::EventBuilder(audit::EventType::kLedgerRestored)
                                      .Set("entries", restored)
                                      .Build())
                        .status());
  }
  return books;
}

StatusOr<std::uint64_t> Books::Append(const StatusOr<audit::Event>& event) {
  RETURN_IF_ERROR(event.status());
  const MutexLock lock(mutex_);
  return log_->Append(*event);
}

StatusOr<std::uint64_t> Books::Record(const Work& work) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
  ASSIGN_OR_RETURN(const std::uint64_t next, log_->Size());
  ASSIGN_OR_RETURN(const audit::Event event, work(store_, next));
  ASSIGN_OR_RETURN(const std::uint64_t index, log_->Append(event));
  RETURN_IF_ERROR(transaction.Commit());
  return index;
}

StatusOr<audit::ProvenLeaf> Books::LeafWithProof(std::uint64_t index) {
  const MutexLock lock(mutex_);
  return log_->LeafWithProof(index);
}

StatusOr<Books::ProvenHead> Books::HeadSince(std::uint64_t size) {
  const MutexLock lock(mutex_);
  ProvenHead proven;
  ASSIGN_OR_RETURN(proven.head, log_->Head());
  if (size > 0) {
    ASSIGN_OR_RETURN(proven.consistency, log_->ConsistencyProof(size, proven.head.checkpoint.size));
  }
  return proven;
}

StatusOr<std::string> Books::LastPeerHead(const std::string& origin) {
  const MutexLock lock(mutex_);
  return audit::PeerHeads(store_.Db()).LastNote(origin);
}

StatusOr<crypto::Checkpoint> Books::WitnessPeerHead(const std::string& note,
                                                    const crypto::NoteVerifier& key,
                                                    std::span<const Digest> proof,
                                                    std::uint64_t own_witnessed) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
  audit::PeerHeads heads(store_.Db());
  ASSIGN_OR_RETURN(const std::optional<crypto::Checkpoint> before, heads.Last(key.name()));
  ASSIGN_OR_RETURN(const crypto::Checkpoint head, heads.Check(note, key, proof));
  if (!before || before->size != head.size) {
    ASSIGN_OR_RETURN(const audit::Event event, audit::EventBuilder(audit::EventType::kHeadWitnessed)
                                                   .Set("log", head.origin)
                                                   .Set("size", head.size)
                                                   .Set("root", head.root)
                                                   .Build());
    RETURN_IF_ERROR(log_->Append(event).status());
  }
  if (own_witnessed > 0) {
    ASSIGN_OR_RETURN(const std::uint64_t size, log_->Size());
    RETURN_IF_ERROR(store_.SetWitnessed(std::min(own_witnessed, size)));
  }
  RETURN_IF_ERROR(transaction.Commit());
  return head;
}

}  // namespace domicile::site_agent
