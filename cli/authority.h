// The folder of a federation's authority: its keys, its certificates, its roster
// (docs/formats/identity.md). What `domicile ca` does, without the command line.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "contracts/roster.h"
#include "crypto/certificate.h"
#include "crypto/note.h"

namespace domicile::cli {

inline constexpr std::chrono::days kRosterLife{30};

// What one party is to get.
struct IssueRequest {
  crypto::Role role = crypto::Role::kNone;
  std::string name;
  std::string jurisdiction;          // sites and aggregators
  std::string organisation;          // sites and aggregators
  std::vector<std::string> control;  // theirs; if empty, the jurisdiction alone
  std::vector<std::string> hosts;    // aggregators: DNS names and addresses
  int days = 0;                      // 1 to 90
  bool renew = false;                // a new TLS key for a party that is in the roster already
};

struct Issued {
  crypto::SpiffeName name;
  Digest tls_key;
  WallTime not_after;
  std::uint64_t roster_version = 0;
};

// An open authority. Holds a lock on the folder, so that two commands cannot both make the next
// roster. Move-only. One thread at a time.
class Authority {
 public:
  // Makes a new one: root, issuing key, roster key, an empty roster of version 1. Errors:
  // kAlreadyExists (the folder is not empty), kInvalidArgument (the name), and those of files.
  static StatusOr<Authority> Create(const std::string& folder, std::string_view federation,
                                    std::chrono::days life, WallTime now, Random& random);
  // Errors: kNotFound, kPermissionDenied, kFailedPrecondition (in use), kUnauthenticated (the
  // roster is not signed by its key), kInvalidArgument (a file cannot be parsed).
  static StatusOr<Authority> Open(const std::string& folder);

  const contracts::Roster& roster() const { return roster_; }
  const std::string& RosterNote() const { return roster_note_; }

  // Makes the identity folder `out` (which must be absent or empty), then raises the roster. If it
  // fails before the roster is written, no certificate counts. Errors: kInvalidArgument,
  // kAlreadyExists, and those of files.
  StatusOr<Issued> Issue(const IssueRequest& request, const std::string& out, WallTime now,
                         Random& random);
  // Removes a party from the roster, which is revocation. Errors: kInvalidArgument (not in it).
  Status Revoke(crypto::Role role, std::string_view name, WallTime now);
  // Signs the same entries anew, for kRosterLife from now.
  Status RenewRoster(WallTime now);

 private:
  Authority(std::string folder, FileHandle lock, crypto::NoteSigner roster_key)
      : folder_(std::move(folder)), lock_(std::move(lock)), roster_key_(std::move(roster_key)) {}
  // The next version, signed; nothing is written.
  StatusOr<std::string> SignNext(contracts::Roster& next, WallTime now) const;
  Status Keep(contracts::Roster next, std::string note);

  std::string folder_;
  FileHandle lock_;
  crypto::NoteSigner roster_key_;
  contracts::Roster roster_;
  std::string roster_note_;
};

// A person's key, for approving grants and signing policies: `path`, and beside it the public half,
// `.key` replaced by
// `.pub`. `name` is one to four names with slashes between: `charite/dpo`. Returns the public key.
// Errors: kInvalidArgument, kAlreadyExists, and those of files.
StatusOr<crypto::NoteVerifier> MakeApprover(std::string_view name, const std::string& path,
                                            Random& random);
// "a.key" -> "a.pub", "a" -> "a.pub".
std::string PublicKeyPath(const std::string& path);

}  // namespace domicile::cli
