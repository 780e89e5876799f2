// The identity folder of a program, as `domicile ca issue` makes it: who I am, my keys, and what
// the federation says about everybody. Used by agent, aggregator and command line alike. Page:
// docs/formats/identity.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "contracts/roster.h"
#include "crypto/certificate.h"
#include "crypto/note.h"
#include "crypto/secret.h"

namespace domicile::contracts {

// The exact texts of the files.
struct IdentityFiles {
  crypto::SecretBytes tls_key;  // tls.key, PEM
  std::string tls_chain;        // tls.pem: leaf, then the issuing certificate
  std::string root;             // root.pem
  crypto::SecretBytes log_key;  // log.key; empty for operators and auditors, which have no log
  std::string roster_note;      // roster.note
  std::string roster_key;       // roster.pub
};

// A checked identity. Move-only (it owns private keys). Immutable once made.
struct Identity {
  IdentityFiles files;                        // what TLS credentials are made of
  crypto::PeerIdentity certificate;           // who the certificate says this is, verified
  std::optional<crypto::NoteSigner> log_key;  // set for sites and aggregators
  crypto::NoteVerifier roster_key;
  Roster roster;      // as it was when loaded; newer ones come at run time
  RosterEntry entry;  // its own

  const crypto::SpiffeName& Name() const { return certificate.spiffe; }
};

// Checks that the files belong together: key and certificate match, the certificate verifies up to
// the root, its role is `role`, the roster is signed by roster.pub, still valid, and lists this
// very name, place, TLS key and log key. Pure. Errors: kInvalidArgument (a file cannot be parsed),
// kUnauthenticated (certificate, signature or match), kFailedPrecondition (roster expired, or it
// does not list this identity); each names the file and what to do.
StatusOr<Identity> CheckIdentity(IdentityFiles files, crypto::Role role, WallTime now);

// Reads and checks a folder. Errors also: kNotFound, kPermissionDenied (a key file that others may
// read), with the path.
StatusOr<Identity> LoadIdentity(const std::string& folder, crypto::Role role, WallTime now);

}  // namespace domicile::contracts
