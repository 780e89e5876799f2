// The heads of other parties' logs, remembered: what makes a shrunk, rewritten or forked log
// visible to the one it was shown to. Agents keep the aggregator's, the aggregator keeps every
// site's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "base/bytes.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "crypto/note.h"

namespace domicile::audit {

// Borrows the database, which has the tables of audit::kLogTables (audit/log.h). Writes join the
// caller's transaction, if there is one. One thread at a time.
class PeerHeads {
 public:
  explicit PeerHeads(Database& db) : db_(&db) {}

  // The last head of this origin; empty if none was seen.
  StatusOr<std::optional<crypto::Checkpoint>> Last(std::string_view origin);
  // Its exact note; empty if none was seen.
  StatusOr<std::string> LastNote(std::string_view origin);

  // Takes a head that must extend the last one, and remembers it. `proof` is the consistency proof
  // from the remembered size; not needed for the first head ever, nor for one of equal size.
  // Errors, nothing remembered:
  //   kUnauthenticated, kInvalidArgument  not a head signed by `key`
  //   kFailedPrecondition                 larger, but no proof was given
  //   kDataLoss                           it shrank or is not the same history; the message has
  //   both heads
  StatusOr<crypto::Checkpoint> Check(std::string_view note, const crypto::NoteVerifier& key,
                                     std::span<const Digest> proof);

  // Takes a head no larger than the last one (a message that was overtaken) and checks that it is a
  // prefix of it. `proof` is from its size to the remembered size. Remembers nothing. Errors as
  // above.
  StatusOr<crypto::Checkpoint> CheckOlder(std::string_view note, const crypto::NoteVerifier& key,
                                          std::span<const Digest> proof);

 private:
  Database* db_;
};

// Checks a leaf that another party proves: the head is signed by `key`, the leaf is in its tree at
// `index`, and it says so itself (origin and seq of its frame). Whether the head is of the history
// one remembers is PeerHeads::Check. Pure. Errors: kUnauthenticated, kInvalidArgument, kDataLoss
// (the proof does not hold).
struct LeafClaim {
  std::uint64_t index = 0;
  std::string_view leaf;
  std::span<const Digest> proof;
  std::string_view head_note;
};
struct CheckedLeaf {
  Leaf leaf;
  crypto::Checkpoint head;
};
StatusOr<CheckedLeaf> CheckLeaf(const LeafClaim& claim, const crypto::NoteVerifier& key);

}  // namespace domicile::audit
