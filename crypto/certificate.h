// Certificates: the SPIFFE name inside, and the one pure function that says who a peer is.
// Sources: RFC 5280, the SPIFFE X509-SVID standard. Page: docs/formats/identity.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"

namespace domicile::crypto {

enum class Role : std::uint8_t {
  kNone = 0,
  kSite = 1,
  kAggregator = 2,
  kOperator = 3,
  kAuditor = 4
};
std::string_view RoleName(Role role);  // "site", "aggregator", "operator", "auditor"; "none"

// The SPIFFE form of a URI (SPIFFE-ID, section 2): spiffe://TRUST-DOMAIN/SEGMENT[/SEGMENT...].
struct SpiffeForm {
  std::string trust_domain;
  std::vector<std::string> segments;  // at least one
};
// Errors: kInvalidArgument, naming the rule.
StatusOr<SpiffeForm> ParseSpiffeForm(std::string_view uri);

// Whether `text` is written like an ISO 3166-1 alpha-2 code (`DE`) or a 3166-2 subdivision
// (`US-CA`). The form only: which codes exist is for policy to say.
bool HasJurisdictionForm(std::string_view text);
// A federation: a DNS name in lower case, `health.example`, at most 253 characters. Errors:
// kInvalidArgument.
Status CheckFederationName(std::string_view text);

// spiffe://FEDERATION/jurisdiction/DE/site/charite | .../aggregator/main
// spiffe://FEDERATION/operator/alice | .../auditor/dpa-berlin
struct SpiffeName {
  std::string federation;  // the trust domain
  Role role = Role::kNone;
  std::string jurisdiction;  // ISO 3166-1 or -2, empty for operators and auditors
  std::string name;          // as Name<...> in base/ids.h
  friend bool operator==(const SpiffeName&, const SpiffeName&) = default;
};
std::string PrintSpiffe(const SpiffeName& name);
// Our path grammar over the SPIFFE form. Errors: kInvalidArgument.
StatusOr<SpiffeName> ParseSpiffe(std::string_view uri);

inline constexpr std::chrono::days kLongestCertificate{90};

struct PeerIdentity {
  SpiffeName spiffe;
  Digest key;          // SHA-256 of SubjectPublicKeyInfo
  std::string serial;  // lower-case hexadecimal
  WallTime not_after;
};

// What the caller wants of the peer.
struct PeerRules {
  std::string federation;  // exact trust domain
  bool is_server = false;  // extended key usage: serverAuth, else clientAuth
  WallTime now;
};

// The first two layers, without our grammar: the X.509 path and the SPIFFE X509-SVID form.
struct SvidRules {
  std::string trust_domain;  // exact
  bool is_server = false;    // extended key usage: serverAuth, else clientAuth
  WallTime now;
  std::string_view crls_pem;  // if not empty: a current CRL of the leaf's issuer is required
};
struct Svid {
  std::string uri;
  Digest key;          // SHA-256 of SubjectPublicKeyInfo
  std::string serial;  // lower-case hexadecimal
  WallTime not_before;
  WallTime not_after;
};
// Errors: kUnauthenticated, naming the rule.
StatusOr<Svid> VerifySvid(std::string_view chain_pem, std::string_view roots_pem,
                          const SvidRules& rules);

// Who the holder of this chain is, or why it is nobody: chain to a root, signatures, validity,
// strict X.509, key and digest strength, not a CA, key usage, exactly one URI SAN that is a SPIFFE
// name of the federation in our grammar, P-256 or Ed25519, a life of at most 90 days. `chain_pem`:
// leaf first. No network, no clock, no files. Errors: kUnauthenticated, naming the rule; never
// anything of the key.
StatusOr<PeerIdentity> VerifyPeerCertificate(std::string_view chain_pem, std::string_view roots_pem,
                                             const PeerRules& rules);

// Whether the leaf is valid for a host name or address that was dialled: DNS SANs for names, IP
// SANs for addresses, never the CN, no wildcards. Errors: kUnauthenticated, listing the wanted name
// and the names found with their kinds.
Status CheckHost(std::string_view leaf_pem, std::string_view host);

// Whether a host is an IPv4 or IPv6 address, and so looked for among the IP names.
bool IsAddress(std::string_view host);

// What a certificate says, of which nothing is verified.
struct CertificateFacts {
  SpiffeName spiffe;
  Digest key;
  std::string serial;
  WallTime not_before;
  WallTime not_after;
  std::vector<std::string> hosts;  // DNS names and addresses, as CheckHost would match them
};
// The first certificate of a PEM text. Errors: kInvalidArgument.
StatusOr<CertificateFacts> ReadCertificate(std::string_view chain_pem);

// Whether a private key belongs to the first certificate of a chain. Errors: kInvalidArgument
// (either cannot be read), kUnauthenticated (they differ).
Status CheckKeyMatches(std::string_view key_pem, std::string_view chain_pem);

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
  std::string
      issuing_pem;  // signed by the root, path length 0, URI name constraint = the federation
};

// Errors: kInvalidArgument (the name, or the times).
StatusOr<Authority> MakeAuthority(std::string_view federation, WallTime not_before,
                                  WallTime not_after);

// Makes a key and a certificate for it. Host names are lower-case DNS names of any length up to
// 253. Errors: kInvalidArgument, naming the field: a name, host or address that is none, neither
// server nor client, a server without hosts, more than 90 days, another federation than the
// issuer's, a life that outlasts the issuer's.
StatusOr<IssuedCertificate> Issue(std::string_view issuing_key_pem, std::string_view issuing_pem,
                                  const CertificateRequest& request);

}  // namespace domicile::crypto
