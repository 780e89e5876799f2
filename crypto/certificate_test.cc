#include "crypto/certificate.h"

#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace domicile::crypto {
namespace {

// Made by an independent implementation and judged by the openssl command; see `how` in the file.
const nlohmann::json& Golden() {
  static const nlohmann::json kGolden = nlohmann::json::parse(
      std::ifstream(DOMICILE_SOURCE_DIR "/tests/golden/x509_spiffe_expected.json"));
  return kGolden;
}

WallTime VerifyAt() {
  return WallTime(std::chrono::seconds(Golden()["verify_at_unix"].get<std::int64_t>()));
}

std::string ChainOf(const nlohmann::json& c) {
  auto pem = c["leaf_pem"].get<std::string>();
  for (const auto& certificate : c["chain_pem"]) {
    pem += certificate.get<std::string>();
  }
  return pem;
}

StatusOr<Svid> VerifyGolden(const nlohmann::json& c, const std::string& trust_domain,
                            bool is_server = false) {
  const auto& set = Golden()["sets"][c["set"].get<std::string>()];
  const std::string crl =
      c["crl"].is_null() ? "" : set[c["crl"].get<std::string>()].get<std::string>();
  return VerifySvid(
      ChainOf(c), set["trust_anchor_pem"].get<std::string>(),
      {.trust_domain = trust_domain, .is_server = is_server, .now = VerifyAt(), .crls_pem = crl});
}

const nlohmann::json& GoldenCase(std::string_view set, std::string_view name) {
  for (const auto& c : Golden()["cases"]) {
    if (c["set"] == set && c["name"] == name) {
      return c;
    }
  }
  FAIL("no such case");
  return Golden();
}

TEST_CASE("VerifySvid: every verdict of the golden file, for P-256 and Ed25519") {
  REQUIRE(Golden()["cases"].size() == 86);
  int accepted = 0;
  for (const auto& c : Golden()["cases"]) {
    CAPTURE(c["set"].get<std::string>());
    CAPTURE(c["name"].get<std::string>());
    const auto verdict = c["verdict"].get<std::string>();
    const auto result = VerifyGolden(c, Golden()["trust_domain"].get<std::string>());
    CAPTURE(ToString(result.status()));
    CHECK(result.ok() == (verdict == "accept"));
    if (result.ok()) {
      ++accepted;
      CHECK(result->uri == c["spiffe_id"].get<std::string>());
    } else {
      CHECK(result.status().code() == StatusCode::kUnauthenticated);
    }
  }
  CHECK(accepted == 8);
}

TEST_CASE("VerifySvid: a name within a constraint is accepted where its domain is configured") {
  for (const char* const set : {"ecdsa-p256", "ed25519"}) {
    const auto& c = GoldenCase(set, "good-name-constraint");
    const auto result = VerifyGolden(c, "eu.fedres.example");
    CAPTURE(ToString(result.status()));
    CHECK(result.ok());
  }
}

TEST_CASE("VerifySvid: golden refusals name the rule that was broken") {
  const struct {
    std::string_view name;
    std::string_view says;
  } cases[] = {
      {"expired", "expired"},
      {"not-yet-valid", "not yet valid"},
      {"two-uri-sans", "2 URI names"},
      {"no-uri-san", "0 URI names"},
      {"no-san-at-all", "common name is not used"},
      {"trust-domain-suffix", "trust domain is"},
      {"trust-domain-prefix", "trust domain is"},
      {"spiffe-no-path-as-leaf", "no path"},
      {"ca-true-leaf", "CA certificate"},
      {"ku-no-digital-signature", "purpose"},
      {"revoked", "revoked"},
      {"crl-stale", "CRL has expired"},
      {"crl-wrong-signer", "CRL signature failure"},
      {"self-signed", "self-signed certificate"},
      {"path-length", "path length"},
      {"name-constraint", "permitted subtree"},
      {"signature-tampered", "signature failure"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto status = VerifyGolden(GoldenCase("ecdsa-p256", c.name), "fedres.example").status();
    CAPTURE(ToString(status));
    CHECK(Message(status).find(c.says) != std::string_view::npos);
  }
}

TEST_CASE("VerifySvid: a required revocation list is required") {
  auto c = GoldenCase("ecdsa-p256", "good-direct-from-root");
  CHECK(VerifyGolden(c, "fedres.example").ok());
  // The list is of another issuer than this leaf's: there is none for it, so it is refused.
  c["crl"] = "crl_pem";
  const auto status = VerifyGolden(c, "fedres.example").status();
  CHECK(Message(status).find("CRL") != std::string_view::npos);
}

TEST_CASE("VerifySvid: the purpose is that of the role asked for") {
  const auto& both = GoldenCase("ecdsa-p256", "good-worker");
  const auto& server = GoldenCase("ecdsa-p256", "eku-server-only-as-client");
  CHECK(VerifyGolden(both, "fedres.example", true).ok());
  CHECK(VerifyGolden(server, "fedres.example", true).ok());
  CHECK_FALSE(VerifyGolden(server, "fedres.example", false).ok());
}

TEST_CASE("VerifySvid: an intermediate in the place of the root is no root") {
  const auto& c = GoldenCase("ecdsa-p256", "good-worker");
  const auto intermediate = c["chain_pem"][0].get<std::string>();
  const auto result = VerifySvid(
      ChainOf(c), intermediate,
      {.trust_domain = "fedres.example", .is_server = false, .now = VerifyAt(), .crls_pem = {}});
  CHECK(Message(result.status()).find("not self-signed") != std::string_view::npos);
}

TEST_CASE("VerifySvid: texts that hold no certificates are refused") {
  const auto& c = GoldenCase("ecdsa-p256", "good-worker");
  const auto root = Golden()["sets"]["ecdsa-p256"]["trust_anchor_pem"].get<std::string>();
  const std::string chain = ChainOf(c);
  const SvidRules rules = {
      .trust_domain = "fedres.example", .is_server = false, .now = VerifyAt(), .crls_pem = {}};
  CHECK(VerifySvid(chain, root, rules).ok());
  const std::string bad[] = {"",
                             "no PEM",
                             chain.substr(0, chain.size() / 2),
                             "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                             chain + chain + chain + chain,
                             std::string(70'000, '\n') + chain};
  for (const std::string& text : bad) {
    CHECK(VerifySvid(text, root, rules).status().code() == StatusCode::kUnauthenticated);
    CHECK(VerifySvid(chain, text, rules).status().code() == StatusCode::kUnauthenticated);
  }
}

TEST_CASE("Certificates: a view of nothing is refused like any other text that holds none") {
  const std::string_view nothing;
  CHECK(VerifyPeerCertificate(nothing, nothing, {}).status().code() ==
        StatusCode::kUnauthenticated);
  CHECK(CheckHost(nothing, nothing).code() == StatusCode::kUnauthenticated);
  CHECK(ReadCertificate(nothing).status().code() == StatusCode::kInvalidArgument);
  CHECK(CheckKeyMatches(nothing, nothing).code() == StatusCode::kInvalidArgument);
  CHECK(Issue(nothing, nothing, {}).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("VerifyPeerCertificate: a valid SVID outside our grammar and life is nobody") {
  const auto& c = GoldenCase("ecdsa-p256", "good-worker");
  const auto root = Golden()["sets"]["ecdsa-p256"]["trust_anchor_pem"].get<std::string>();
  const auto result = VerifyPeerCertificate(
      ChainOf(c), root, {.federation = "fedres.example", .is_server = false, .now = VerifyAt()});
  CHECK(result.status().code() == StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace domicile::crypto
