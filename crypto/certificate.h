// Certificates: the SPIFFE name inside, and the one pure function that says who a peer is.
// Sources: RFC 5280, the SPIFFE X509-SVID standard. Page: docs/formats/identity.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"

namespace domicile::crypto {

enum class Role : std::uint8_t { kNone = 0, kSite = 1, kAggregator = 2, kOperator = 3, kAuditor = 4 };
std::string_view RoleName(Role role);  // "site", "aggregator", "operator", "auditor"

// spiffe://FEDERATION/jurisdiction/DE/site/charite | .../aggregator/main
// spiffe://FEDERATION/operator/alice | .../auditor/dpa-berlin
struct SpiffeName {
  std::string federation;    // the trust domain
  Role role = Role::kNone;
  std::string jurisdiction;  // ISO 3166-1 or -2, empty for operators and auditors
  std::string name;          // as Name<...> in base/ids.h
  friend bool operator==(const SpiffeName&, const SpiffeName&) = default;
};
std::string PrintSpiffe(const SpiffeName& name);
// Our path grammar over the SPIFFE form. Errors: kInvalidArgument.
StatusOr<SpiffeName> ParseSpiffe(std::string_view uri);

struct PeerIdentity {
  SpiffeName spiffe;
  Digest key;                // SHA-256 of SubjectPublicKeyInfo
  std::string serial;        // lower-case hexadecimal
  WallTime not_after;
};

// What the caller wants of the peer.
struct PeerRules {
  std::string federation;     // exact trust domain
  bool is_server = false;     // extended key usage: serverAuth, else clientAuth
  WallTime now;
};

// Who the holder of this chain is, or why it is nobody: chain to a root, signatures, validity, strict
// X.509, key and digest strength, not a CA, key usage, exactly one URI SAN that is a SPIFFE name of the
// federation in our grammar. `chain_pem`: leaf first. No network, no clock, no files.
// Errors: kUnauthenticated, naming the rule; never anything of the key.
StatusOr<PeerIdentity> VerifyPeerCertificate(std::string_view chain_pem, std::string_view roots_pem,
                                             const PeerRules& rules);

// Whether the leaf is valid for a host name or address that was dialled: DNS SANs for names, IP SANs for
// addresses, never the CN, no wildcards. Errors: kUnauthenticated, listing the wanted name and the names
// found with their kinds.
Status CheckHost(std::string_view leaf_pem, std::string_view host);

// ---- issuing (the `ca` commands) ----

struct CertificateRequest {
  SpiffeName spiffe;
  std::vector<std::string> dns_names;     // SANs, servers
  std::vector<std::string> ip_addresses;  // SANs, servers
  bool server = false;
  bool client = false;
  WallTime not_before;
  WallTime not_after;
};

struct IssuedCertificate {
  std::string key_pem;    // the new private key (P-256)
  std::string chain_pem;  // leaf, then the issuing certificate
  Digest key;             // SHA-256 of SubjectPublicKeyInfo
};

struct Authority {
  std::string root_key_pem;
  std::string root_pem;
  std::string issuing_key_pem;
  std::string issuing_pem;  // signed by the root, path length 0, URI name constraint = the federation
};

StatusOr<Authority> MakeAuthority(std::string_view federation, WallTime not_before, WallTime not_after);
StatusOr<IssuedCertificate> Issue(std::string_view issuing_key_pem, std::string_view issuing_pem,
                                  const CertificateRequest& request);

}  // namespace domicile::crypto
