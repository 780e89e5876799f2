// Recovery: how a log that was restored from an older copy goes on, so that others can check it.
// Page: docs/formats/log.md, Recovery.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "audit/event.h"
#include "audit/peer_heads.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "crypto/note.h"

namespace domicile::audit {

// `log.recovered`.
struct LogRecovered {
  std::string operator_name;   // who said to go on; a name of base/ids.h
  std::uint64_t instance = 0;  // of the agent, above all that others have seen
  std::uint64_t size = 0;      // this log, right before the leaf
  Digest root;
  std::uint64_t kept = 0;             // so many entries are known to be of both histories
  std::uint64_t remembered_size = 0;  // the head that others remember
  Digest remembered_root;
  std::vector<DatasetAlias> datasets;  // that count as spent
  friend bool operator==(const LogRecovered&, const LogRecovered&) = default;
};
StatusOr<Event> ToEvent(const LogRecovered& record);
StatusOr<LogRecovered> ReadLogRecovered(const Event& event);

// The leaf with what convinces the one who remembers the other head.
struct RecoveryClaim {
  std::uint64_t index = 0;
  std::string leaf;
  std::vector<Digest> proof;
  std::string head_note;
  // If the leaf stands at or after the remembered size: the root of that many entries of this log,
  // and the consistency proof from it to the head. Else zero and empty.
  Digest root_then;
  std::vector<Digest> consistency;
};

struct CheckedRecovery {
  LogRecovered record;
  std::uint64_t index = 0;
  crypto::Checkpoint head;  // to be remembered from now on
};

// Whether the claim replaces exactly this remembered head. Pure. Errors: those of CheckLeaf;
// kInvalidArgument (another type of leaf, or one that misstates its place); kFailedPrecondition (it
// names another head, or the log was not behind); kDataLoss (the consistency proof does not hold).
StatusOr<CheckedRecovery> CheckRecovery(const RecoveryClaim& claim, const crypto::NoteVerifier& key,
                                        const crypto::Checkpoint& remembered);

// Checks against the last head of this key's log in `db` and remembers the new one in its place.
// Within the caller's transaction. Errors: those of CheckRecovery, nothing changed; also
// kFailedPrecondition where no head is remembered.
StatusOr<CheckedRecovery> TakeRecovery(Database& db, const RecoveryClaim& claim,
                                       const crypto::NoteVerifier& key);

}  // namespace domicile::audit
