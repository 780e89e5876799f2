// The verifier: whether a log is what was written. Shares only hashing and the list of events with
// the code that writes logs; it recomputes everything from the leaves and compares. Offline: no
// clock, no network.
//
// What it can see depends on what it is given. Edits, insertions, removals in the middle and
// reordering show against any head; removal at the end shows only against a head that was kept
// somewhere else. It says what it could not check and never only "valid".
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "audit/recovery.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"
#include "crypto/note.h"

namespace domicile::audit {

struct VerifyOptions {
  std::vector<std::string> outside_heads;   // notes kept outside this file
  std::optional<crypto::NoteVerifier> key;  // of the log; without it signatures are not checked
  // Hashes of the leaves kept beside an export (docs/formats/log.md): names the changed leaf.
  // Trusted only as far as they lead to a head that was given.
  std::optional<std::vector<Digest>> leaf_hashes;
  // kBytes: any JSON lines with `seq`, without the list of events; for logs of other programs.
  enum class Content : std::uint8_t { kEvents = 0, kBytes = 1 };
  Content content = Content::kEvents;
  std::function<void(std::uint64_t leaves)> progress;  // called now and then; may be empty
};

// What is wrong. Stored in machine-readable reports by name: append only.
enum class FindingKind : std::uint8_t {
  kNone = 0,
  kDamage,     // the file itself: SQLite's own check, an unreadable page, a missing table
  kTornLine,   // the last line of an export is not whole: set aside, not an entry
  kLineEnd,    // CR LF: other bytes than were written
  kEmpty,      // no entries at all
  kSequence,   // a leaf with another number than its place
  kLeafBytes,  // a leaf whose bytes do not have the stored hash
  kLeafForm,   // not canonical, of an unknown type, a wrong field, another origin
  kTime,       // a time before that of the leaf before it
  kSubtree,    // a stored subtree hash that is wrong, missing or too many
  kHeadForm,   // a head that cannot be read, of another origin, or whose columns differ from its
               // note
  kHeadSignature,  // a head with a wrong signature, or none of the key
  kHeadSize,       // a head says more entries than the log has
  kHeadRoot,       // the first `size` leaves are not those of the head
};
std::string_view FindingName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kNone;
  std::optional<std::uint64_t> seq;  // the first bad leaf, where one can be named
  std::string text;                  // a sentence, without values of the leaf
};

// A recovery that the log tells of (docs/formats/log.md).
struct RecoveryLine {
  std::uint64_t seq = 0;
  LogRecovered record;
  bool seen_outside = false;  // a head from outside is the one it names
};

struct VerifyReport {
  std::string origin;               // of the leaves; empty if there are none
  std::uint64_t size = 0;           // leaves that were read
  Digest root;                      // of those leaves
  std::uint64_t heads_inside = 0;   // stored heads that agree
  std::uint64_t heads_outside = 0;  // heads given that agree
  std::uint64_t proven_size = 0;    // the greatest size that a head from outside agrees with
  bool signatures_checked = false;
  std::vector<RecoveryLine> recoveries;
  std::vector<Finding> findings;         // in the order they were met; at most kMostFindings
  std::vector<std::string> not_checked;  // what could not be seen with what was given

  bool Intact() const { return findings.empty(); }
};
inline constexpr std::size_t kMostFindings = 100;

// Errors only for a file that cannot be opened at all (kNotFound, kPermissionDenied, kUnavailable);
// everything else is a finding.
StatusOr<VerifyReport> VerifyLogFile(const std::string& path, const VerifyOptions& options);

// The same for an export in memory or a stream.
VerifyReport VerifyExport(std::istream& lines, const VerifyOptions& options);

// For people (ends in a newline) and for machines.
std::string PrintReport(const VerifyReport& report);
Json ReportJson(const VerifyReport& report);

}  // namespace domicile::audit
