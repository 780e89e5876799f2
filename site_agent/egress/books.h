// The site's books: its store and its log in one database, and the one mutex that guards both.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/log.h"
#include "audit/peer_heads.h"
#include "audit/recovery.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/status.h"
#include "crypto/note.h"
#include "site_agent/egress/site_store.h"

namespace domicile::site_agent {

// Thread-safe.
class Books {
 public:
  // The signer, clock and randomness outlive the books. Errors: those of SiteStore and audit::Log.
  static StatusOr<std::unique_ptr<Books>> Open(const std::string& folder,
                                               const crypto::NoteSigner& signer, const Clock& clock,
                                               Random& random);

  std::uint64_t Instance() const { return instance_; }

  // One leaf, durable when this returns. Errors also: what Build() said.
  StatusOr<std::uint64_t> Append(const StatusOr<audit::Event>& event);

  // Runs `work` in one transaction that ends with the leaf it returns: rows and leaf are there
  // together or not at all. `leaf` is the index that the leaf will have. Returns it.
  using Work = std::function<StatusOr<audit::Event>(SiteStore& store, std::uint64_t leaf)>;
  StatusOr<std::uint64_t> Record(const Work& work);

  // Runs `read` with the store; for questions, and for writes that no leaf goes with.
  template <typename F>
  auto With(F read) -> decltype(read(std::declval<SiteStore&>())) {
    const MutexLock lock(mutex_);
    return read(store_);
  }

  StatusOr<audit::ProvenLeaf> LeafWithProof(std::uint64_t index);

  // The current head, with the proof from a smaller size (none from 0).
  struct ProvenHead {
    audit::SignedHead head;
    std::vector<Digest> consistency;
  };
  StatusOr<ProvenHead> HeadSince(std::uint64_t size);
  // Whether this log still contains a head of its own, empty or signed with its key, that the
  // aggregator remembers. kDataLoss, after the head and the greatest `instance` that was seen are
  // kept for Recover: nothing may leave until then. kUnauthenticated: this key has not signed it.
  Status CheckRemembered(const std::string& note, std::uint64_t instance);
  // The same of the head that was kept, if one was and nothing has answered it yet.
  Status CheckNotBehind();

  // Goes on from the entries that there are: leaf, ledger, outbox and instance number in one
  // transaction (docs/formats/log.md). All datasets of the ledger are spent, and `datasets`.
  // Returns the leaf. Errors: kFailedPrecondition (nobody is known to remember another head, or it
  // is answered already), kInvalidArgument (the operator's name).
  struct RecoveryOrder {
    std::string operator_name;
    std::vector<DatasetAlias> datasets;
  };
  StatusOr<audit::LogRecovered> PlanRecovery(const RecoveryOrder& order);  // changes nothing
  StatusOr<audit::LogRecovered> Recover(const RecoveryOrder& order);
  // What the aggregator is shown until it is known to have taken it.
  StatusOr<std::optional<audit::RecoveryClaim>> RecoveryToShow();

  // The aggregator's heads, as audit::PeerHeads. `own_witnessed`: the size of this log that it has
  // witnessed by then.
  StatusOr<std::string> LastPeerHead(const std::string& origin);
  StatusOr<crypto::Checkpoint> WitnessPeerHead(const std::string& note,
                                               const crypto::NoteVerifier& key,
                                               std::span<const Digest> proof,
                                               std::uint64_t own_witnessed = 0);

 private:
  Books(SiteStore store, crypto::NoteVerifier key, const Clock& clock)
      : instance_(store.Instance()),
        key_(std::move(key)),
        clock_(clock),
        store_(std::move(store)) {}
  StatusOr<audit::LogRecovered> RecoveryNow(const RecoveryOrder& order) REQUIRES(mutex_);

  const std::uint64_t instance_;
  const crypto::NoteVerifier key_;  // of this log
  const Clock& clock_;
  Mutex mutex_;
  SiteStore store_ GUARDED_BY(mutex_);
  std::optional<audit::Log> log_ GUARDED_BY(mutex_);
};

}  // namespace domicile::site_agent
