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
  // Whether this log still contains a head of its own that the aggregator remembers. kDataLoss.
  Status CheckRemembered(std::uint64_t size, const Digest& root);

  // The aggregator's heads, as audit::PeerHeads.
  StatusOr<std::string> LastPeerHead(const std::string& origin);
  StatusOr<crypto::Checkpoint> WitnessPeerHead(const std::string& note,
                                               const crypto::NoteVerifier& key,
                                               std::span<const Digest> proof);

 private:
  Books(SiteStore store, std::string origin)
      : instance_(store.Instance()), origin_(std::move(origin)), store_(std::move(store)) {}

  const std::uint64_t instance_;
  const std::string origin_;
  Mutex mutex_;
  SiteStore store_ GUARDED_BY(mutex_);
  std::optional<audit::Log> log_ GUARDED_BY(mutex_);
};

}  // namespace domicile::site_agent
