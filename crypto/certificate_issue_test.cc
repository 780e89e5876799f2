#include <chrono>
#include <functional>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "crypto/certificate.h"
#include "crypto/internal/x509_builder.h"

namespace domicile::crypto {
namespace {

using std::chrono::days;
using std::chrono::hours;

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

const Authority& TestAuthority() {
  static const Authority kAuthority =
      *MakeAuthority("fed.example", kNow - hours(1), kNow + days(3650));
  return kAuthority;
}

CertificateRequest SiteRequest() {
  CertificateRequest request;
  request.spiffe = {
      .federation = "fed.example", .role = Role::kSite, .jurisdiction = "DE", .name = "charite"};
  request.client = true;
  request.not_before = kNow - hours(1);
  request.not_after = kNow + days(30);
  return request;
}

CertificateRequest ServerRequest() {
  CertificateRequest request = SiteRequest();
  request.spiffe.role = Role::kAggregator;
  request.client = false;
  request.server = true;
  request.dns_names = {"aggregator.fed.example"};
  request.ip_addresses = {"127.0.0.1", "::1"};
  return request;
}

StatusOr<IssuedCertificate> IssueFor(const CertificateRequest& request) {
  return Issue(TestAuthority().issuing_key_pem, TestAuthority().issuing_pem, request);
}

PeerRules Rules(bool is_server, WallTime now = kNow) {
  return {.federation = "fed.example", .is_server = is_server, .now = now};
}

// A leaf with everything right, for tests that then make one thing wrong.
internal::CertificateSpec LeafSpec() {
  internal::CertificateSpec spec;
  spec.common_name = "charite";
  spec.not_before = kNow - hours(1);
  spec.not_after = kNow + days(30);
  spec.basic_constraints = "critical,CA:FALSE";
  spec.key_usage = "critical,digitalSignature";
  spec.extended_key_usage = "clientAuth";
  spec.names = {{internal::NameKind::kUri, "spiffe://fed.example/jurisdiction/DE/site/charite"}};
  return spec;
}

std::string SignedByIssuer(const internal::CertificateSpec& spec, EVP_PKEY* key) {
  const auto issuers = *internal::ParseCertificates(TestAuthority().issuing_pem, "issuer");
  const auto issuing_key = *internal::ParsePrivateKey(TestAuthority().issuing_key_pem, "key");
  const auto made = *internal::MakeCertificate(spec, key, issuers.front().get(), issuing_key.get());
  return internal::PrintPem(made.get()) + TestAuthority().issuing_pem;
}

TEST_CASE("Issue: what it makes verifies as the identity asked for, and belongs to its key") {
  const auto issued = IssueFor(SiteRequest());
  REQUIRE(issued.ok());

  const auto peer =
      VerifyPeerCertificate(issued->chain_pem, TestAuthority().root_pem, Rules(false));

  CAPTURE(ToString(peer.status()));
  REQUIRE(peer.ok());
  CHECK(peer->spiffe == SiteRequest().spiffe);
  CHECK(peer->key == issued->key);
  CHECK(peer->not_after == SiteRequest().not_after);
  CHECK(CheckKeyMatches(issued->key_pem, issued->chain_pem).ok());
  CHECK(CheckKeyMatches(TestAuthority().root_key_pem, issued->chain_pem).code() ==
        StatusCode::kUnauthenticated);
  const auto facts = ReadCertificate(issued->chain_pem);
  REQUIRE(facts.ok());
  CHECK(facts->spiffe == peer->spiffe);
  CHECK(facts->serial == peer->serial);
  CHECK(facts->hosts.empty());
}

TEST_CASE("Issue: a client is no server, and a server no client") {
  const auto client = IssueFor(SiteRequest());
  const auto server = IssueFor(ServerRequest());
  REQUIRE(server.ok());
  const std::string& root = TestAuthority().root_pem;
  CHECK(VerifyPeerCertificate(server->chain_pem, root, Rules(true)).ok());
  CHECK_FALSE(VerifyPeerCertificate(client->chain_pem, root, Rules(true)).ok());
  CHECK_FALSE(VerifyPeerCertificate(server->chain_pem, root, Rules(false)).ok());
}

TEST_CASE("Issue: keys and serials are new each time") {
  std::set<std::string> serials;
  std::set<std::string> keys;
  for (int i = 0; i < 5; ++i) {
    const auto issued = IssueFor(SiteRequest());
    serials.insert(ReadCertificate(issued->chain_pem)->serial);
    keys.insert(PrintHex(issued->key));
  }
  CHECK(serials.size() == 5);
  CHECK(keys.size() == 5);
}

TEST_CASE("Issue: requests that no peer would accept are refused, with the field") {
  const struct {
    std::string name;
    std::function<void(CertificateRequest&)> change;
    std::string says;
  } cases[] = {
      {"91 days", [](auto& r) { r.not_after = r.not_before + days(91); }, "90 days"},
      {"backwards", [](auto& r) { r.not_after = r.not_before; }, "ends before"},
      {"other federation", [](auto& r) { r.spiffe.federation = "other.example"; }, "federation"},
      {"no role", [](auto& r) { r.spiffe.role = Role::kNone; }, "role"},
      {"bad place", [](auto& r) { r.spiffe.jurisdiction = "Germany"; }, "jurisdiction"},
      {"no place", [](auto& r) { r.spiffe.jurisdiction = ""; }, "jurisdiction"},
      {"slash in name", [](auto& r) { r.spiffe.name = "a/b"; }, "path"},
      {"no use", [](auto& r) { r.server = false; }, "neither"},
      {"no host", [](auto& r) { r.dns_names = {}, r.ip_addresses = {}; }, "at least one"},
      {"wildcard", [](auto& r) { r.dns_names = {"*.fed.example"}; }, "DNS name"},
      {"address as name", [](auto& r) { r.dns_names = {"127.0.0.1"}; }, "DNS name"},
      {"injected name", [](auto& r) { r.dns_names = {"a,URI:spiffe://x/y"}; }, "DNS name"},
      {"name as address", [](auto& r) { r.ip_addresses = {"localhost"}; }, "address"},
      {"outlasts issuer",
       [](auto& r) { r.not_before = kNow + days(3600), r.not_after = kNow + days(3660); },
       "issuing certificate"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CertificateRequest request = ServerRequest();
    c.change(request);
    const Status status = IssueFor(request).status();
    CAPTURE(ToString(status));
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Message(status).find(c.says) != std::string_view::npos);
  }
  CHECK(IssueFor(ServerRequest()).ok());
}

TEST_CASE("Issue: a host name above 63 characters works, for its whole length") {
  CertificateRequest request = ServerRequest();
  const std::string label(60, 'a');
  const std::string host = label + "." + label + "." + label + ".fed.example";
  request.dns_names = {host};
  const auto issued = IssueFor(request);
  REQUIRE(issued.ok());
  CHECK(VerifyPeerCertificate(issued->chain_pem, TestAuthority().root_pem, Rules(true)).ok());
  CHECK(CheckHost(issued->chain_pem, host).ok());
  CHECK_FALSE(CheckHost(issued->chain_pem, host.substr(0, 64)).ok());
}

TEST_CASE("MakeAuthority: long federation names and one-label names work") {
  const std::string label(60, 'f');
  for (const std::string& name : {std::string("demo"), label + "." + label + ".example"}) {
    CAPTURE(name);
    const auto authority = MakeAuthority(name, kNow - hours(1), kNow + days(3650));
    REQUIRE(authority.ok());
    CertificateRequest request = SiteRequest();
    request.spiffe.federation = name;
    const auto issued = Issue(authority->issuing_key_pem, authority->issuing_pem, request);
    REQUIRE(issued.ok());
    PeerRules rules = Rules(false);
    rules.federation = name;
    const auto peer = VerifyPeerCertificate(issued->chain_pem, authority->root_pem, rules);
    CAPTURE(ToString(peer.status()));
    CHECK(peer.ok());
  }
  CHECK_FALSE(MakeAuthority("Fed", kNow, kNow + days(1)).ok());
  CHECK_FALSE(MakeAuthority("fed", kNow, kNow).ok());
}

TEST_CASE("VerifyPeerCertificate: each rule refuses by itself what is otherwise right") {
  using internal::NameKind;
  const struct {
    std::string name;
    std::function<void(internal::CertificateSpec&)> change;
    std::string says;  // empty: accepted
  } cases[] = {
      {"nothing wrong", [](auto&) {}, ""},
      {"91 days", [](auto& s) { s.not_after = s.not_before + days(91); }, "90 days"},
      {"no key usage", [](auto& s) { s.key_usage = ""; }, "digitalSignature"},
      {"key usage of an issuer", [](auto& s) { s.key_usage = "digitalSignature,cRLSign"; },
       "cRLSign"},
      {"no extended key usage", [](auto& s) { s.extended_key_usage = ""; }, "clientAuth"},
      {"any extended key usage", [](auto& s) { s.extended_key_usage = "anyExtendedKeyUsage"; },
       "purpose"},
      {"outside our grammar", [](auto& s) { s.names[0].text = "spiffe://fed.example/worker/x"; },
       "role"},
      {"place of another form",
       [](auto& s) { s.names[0].text = "spiffe://fed.example/jurisdiction/EU1/site/x"; },
       "jurisdiction"},
      {"a second URI",
       [](auto& s) {
         s.names.push_back({NameKind::kUri, "https://fed.example/x"});
       },
       "2 URI names"},
      {"name with a NUL",
       [](auto& s) { s.names[0].text = std::string("spiffe://fed.example/operator/a\0.evil", 37); },
       ""},
  };
  const internal::Key key = internal::MakeP256Key();
  for (const auto& c : cases) {
    CAPTURE(c.name);
    internal::CertificateSpec spec = LeafSpec();
    c.change(spec);
    const auto peer = VerifyPeerCertificate(SignedByIssuer(spec, key.get()),
                                            TestAuthority().root_pem, Rules(false));
    CAPTURE(ToString(peer.status()));
    if (c.name == "name with a NUL") {
      CHECK(peer.status().code() == StatusCode::kUnauthenticated);
      continue;
    }
    CHECK(peer.ok() == c.says.empty());
    CHECK(Message(peer.status()).find(c.says) != std::string_view::npos);
  }
}

TEST_CASE("VerifyPeerCertificate: only P-256 and Ed25519 keys") {
  const struct {
    const char* type;
    const char* curve;
    bool fits;
  } cases[] = {{"EC", "P-256", true}, {"ED25519", nullptr, true}, {"EC", "P-384", false}};
  for (const auto& c : cases) {
    CAPTURE(c.type);
    const internal::Key key(c.curve != nullptr
                                ? EVP_PKEY_Q_keygen(nullptr, nullptr, c.type, c.curve)
                                : EVP_PKEY_Q_keygen(nullptr, nullptr, c.type));
    REQUIRE(key != nullptr);
    const auto peer = VerifyPeerCertificate(SignedByIssuer(LeafSpec(), key.get()),
                                            TestAuthority().root_pem, Rules(false));
    CAPTURE(ToString(peer.status()));
    CHECK(peer.ok() == c.fits);
  }
}

TEST_CASE("VerifyPeerCertificate: time, federation and root are those of the caller") {
  const auto issued = IssueFor(SiteRequest());
  const std::string& chain = issued->chain_pem;
  const std::string& root = TestAuthority().root_pem;
  PeerRules other = Rules(false);
  other.federation = "fed.example.evil.example";
  const auto stranger = MakeAuthority("fed.example", kNow - hours(1), kNow + days(3650));
  CHECK(VerifyPeerCertificate(chain, root, Rules(false)).ok());
  CHECK_FALSE(VerifyPeerCertificate(chain, root, Rules(false, kNow - hours(2))).ok());
  CHECK_FALSE(VerifyPeerCertificate(chain, root, Rules(false, kNow + days(31))).ok());
  CHECK_FALSE(VerifyPeerCertificate(chain, root, other).ok());
  CHECK_FALSE(VerifyPeerCertificate(chain, stranger->root_pem, Rules(false)).ok());
}

TEST_CASE("VerifyPeerCertificate: the issuing key cannot speak for another federation") {
  internal::CertificateSpec spec = LeafSpec();
  spec.names[0].text = "spiffe://other.example/jurisdiction/DE/site/charite";
  const internal::Key key = internal::MakeP256Key();
  PeerRules rules = Rules(false);
  rules.federation = "other.example";
  const auto peer =
      VerifyPeerCertificate(SignedByIssuer(spec, key.get()), TestAuthority().root_pem, rules);
  CHECK(Message(peer.status()).find("permitted subtree") != std::string_view::npos);
}

TEST_CASE("CheckKeyMatches: an encrypted or broken key is an error, not a question") {
  const auto issued = IssueFor(SiteRequest());
  const std::string encrypted =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
  CHECK(CheckKeyMatches(encrypted, issued->chain_pem).code() == StatusCode::kInvalidArgument);
  CHECK(CheckKeyMatches("", issued->chain_pem).code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace domicile::crypto
