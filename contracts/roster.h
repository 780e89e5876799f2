// The roster: one file, signed by the federation's offline key, that says what each party's keys
// stand for. A certificate proves a key; the roster proves name, organisation and place
// (docs/formats/roster.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "crypto/certificate.h"
#include "crypto/note.h"
#include "policy/reason.h"

namespace domicile::contracts {

// One party. `name` is unique within its role.
struct RosterEntry {
  crypto::Role role = crypto::Role::kNone;
  std::string name;
  std::string jurisdiction;  // ISO 3166-1 or -2; empty for operators and auditors
  std::vector<std::string> control_jurisdictions;  // of owner, parent, key custodian; sorted
  std::string organisation;                        // contributors are counted by it
  std::vector<Digest> tls_keys;  // SHA-256 of SubjectPublicKeyInfo, current and next
  std::string log_key;           // C2SP verifier key of its log; empty for operators
  friend bool operator==(const RosterEntry&, const RosterEntry&) = default;
};

struct Roster {
  std::string federation;     // the trust domain
  std::uint64_t version = 0;  // only grows
  WallTime valid_until;
  std::vector<RosterEntry> entries;  // sorted by role, then name

  const RosterEntry* Find(crypto::Role role, std::string_view name) const;
  friend bool operator==(const Roster&, const Roster&) = default;
};

// Everything that must hold within one roster: names, places, keys, order, nothing twice.
// Errors: kInvalidArgument, naming the entry and the field.
Status CheckRoster(const Roster& roster);

std::string RosterText(const Roster& roster);  // canonical JSON and a newline
// Reads only what RosterText prints, and only what passes CheckRoster. Errors: kInvalidArgument.
StatusOr<Roster> RosterFromText(std::string_view text);

// The name of the key that signs a federation's rosters, and of a party's log key.
std::string RosterKeyName(std::string_view federation);
std::string LogKeyName(std::string_view federation, crypto::Role role, std::string_view name);

// Opens a signed roster. Errors: kUnauthenticated (no valid signature of `key`), kInvalidArgument
// (content, or a key of another name than the federation's), kFailedPrecondition (valid_until
// passed, or version below `smallest_version`).
StatusOr<Roster> OpenRoster(std::string_view note, const crypto::NoteVerifier& key, WallTime now,
                            std::uint64_t smallest_version);

// Matches a verified certificate against the roster: the entry must exist, with the same
// jurisdiction and this very key. kNone if so.
struct PeerCheck {
  policy::Reason reason = policy::Reason::kNotInRoster;
  const RosterEntry* entry = nullptr;  // set if reason is kNone
};
PeerCheck CheckPeer(const Roster& roster, const crypto::PeerIdentity& peer, crypto::Role wanted);

}  // namespace domicile::contracts
