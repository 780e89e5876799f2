// The log: a party's events as the leaves of an RFC 9162 tree, in rows of the same SQLite database
// as the state they record, so that an action and its event are one transaction. Page:
// docs/formats/log.md.
//
//   audit::kLogTables is the first step of the owner's migrations:
//     constexpr std::string_view kSteps[] = {audit::kLogTables, "CREATE TABLE ..."};
//     RETURN_IF_ERROR(db.Migrate(kMyApplicationId, kSteps));
//     ASSIGN_OR_RETURN(audit::Log log, audit::Log::Open(db, signer, clock, random));
//
//     ASSIGN_OR_RETURN(Transaction tx, Transaction::Begin(db));
//     ... rows of state ...
//     RETURN_IF_ERROR(log.Append(event));
//     RETURN_IF_ERROR(tx.Commit());
//     ASSIGN_OR_RETURN(const audit::SignedHead head, log.Head());   // after the commit
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "crypto/note.h"

namespace domicile::audit {

// Leaves, hashes of complete subtrees of two or more leaves, signed heads, and the last heads of
// others.
inline constexpr std::string_view kLogTables = R"(
CREATE TABLE log_leaf (
  seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE TABLE log_subtree (
  level INTEGER NOT NULL, idx INTEGER NOT NULL, hash BLOB NOT NULL,
  PRIMARY KEY (level, idx)) STRICT, WITHOUT ROWID;
CREATE TABLE log_head (
  size INTEGER PRIMARY KEY, root BLOB NOT NULL, note TEXT NOT NULL) STRICT;
CREATE TABLE log_peer_head (
  origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL, note TEXT NOT NULL)
  STRICT, WITHOUT ROWID;
)";

// A head: `note` is the signed note over (origin, size, root).
struct SignedHead {
  crypto::Checkpoint checkpoint;
  std::string note;
  friend bool operator==(const SignedHead&, const SignedHead&) = default;
};

// A leaf with what convinces another party that it is in the tree of a head.
struct ProvenLeaf {
  std::uint64_t index = 0;
  std::string leaf;
  std::vector<Digest> proof;
  SignedHead head;
};

// What opening found.
struct OpenReport {
  std::uint64_t size = 0;              // leaves
  std::uint64_t last_signed_size = 0;  // leaves under the last head; the rest was not signed yet
};

// Borrows the database, signer and clock, which must outlive it. Holds prepared statements of the
// database. One thread at a time: guard it with the mutex that guards the database.
class Log {
 public:
  // Checks every stored hash and the last head against the leaves (about a second per million
  // leaves) and refuses a log that is not what was written: unlike `domicile audit verify` it reads
  // only the frame of the last leaf. The origin is the signer's name. Errors: kDataLoss (names the
  // first bad leaf, or the head and what the log has), kFailedPrecondition (no tables: kLogTables
  // missing from the migrations; or the log is of another origin), kInvalidArgument (the signer's
  // name cannot name a log), kUnavailable.
  static StatusOr<Log> Open(Database& db, const crypto::NoteSigner& signer, const Clock& clock,
                            Random& random);

  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  ~Log();

  const OpenReport& Opened() const;
  const std::string& Origin() const;

  // Adds a leaf within the caller's transaction and returns its index. If the transaction is rolled
  // back, the leaf never was; the next Append takes its place. Outside a transaction the leaf is
  // its own. Errors: kInvalidArgument (too long), kResourceExhausted (disk full), kUnavailable.
  // O(log n) rows, on average two.
  StatusOr<std::uint64_t> Append(const Event& event);

  // Leaves, those of an open transaction included.
  StatusOr<std::uint64_t> Size();

  // The signed head over all committed leaves; made and stored when there are new ones, else the
  // last. Must be called outside a transaction, and says so otherwise (kFailedPrecondition): a head
  // over rows that are then rolled back would be a fork of our own.
  StatusOr<SignedHead> Head();

  // The exact bytes of a leaf. Errors: kNotFound.
  StatusOr<std::string> LeafBytes(std::uint64_t index);

  // RFC 9162 proofs, from stored subtree hashes: O(log n). Errors: kOutOfRange (index >= size, size
  // beyond the log, first > second), kDataLoss (a stored hash is missing).
  StatusOr<std::vector<Digest>> InclusionProof(std::uint64_t index, std::uint64_t size);
  StatusOr<std::vector<Digest>> ConsistencyProof(std::uint64_t first, std::uint64_t second);
  StatusOr<Digest> RootAt(std::uint64_t size);

  // The leaf with its proof in Head(). Not within a transaction. Errors: kNotFound, and those of
  // Head.
  StatusOr<ProvenLeaf> LeafWithProof(std::uint64_t index);

  // Whether this log still contains a head of its own that another party remembers. Errors:
  // kDataLoss: the log is shorter (a restored backup: nothing may leave until it is recovered) or
  // differs.
  Status CheckRemembered(const crypto::Checkpoint& remembered);

 private:
  struct State;
  explicit Log(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace domicile::audit
