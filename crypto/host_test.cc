#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "crypto/certificate.h"
#include "crypto/internal/x509_builder.h"

namespace domicile::crypto {
namespace {

using internal::NameKind;
using internal::SubjectName;

constexpr std::string_view kHost = "aggregator.fed.example";
const std::string kUri = "spiffe://fed.example/jurisdiction/IE/aggregator/main";
const std::string kLoopback = {127, 0, 0, 1};

// A self-signed server certificate with the right SPIFFE name and these other names.
std::string ServerPem(const std::string& common_name, std::vector<SubjectName> names) {
  const internal::Key key = internal::MakeP256Key();
  internal::CertificateSpec spec;
  spec.common_name = common_name;
  spec.not_before = *ParseTime("2026-12-01T00:00:00Z");
  spec.not_after = *ParseTime("2026-12-31T00:00:00Z");
  spec.basic_constraints = "critical,CA:FALSE";
  spec.key_usage = "critical,digitalSignature";
  spec.extended_key_usage = "serverAuth";
  names.insert(names.begin(), {NameKind::kUri, kUri});
  spec.names = std::move(names);
  const auto made = internal::MakeCertificate(spec, key.get(), nullptr, key.get());
  return internal::PrintPem(made->get());
}

TEST_CASE("CheckHost: names by DNS name, addresses by IP name, never the common name") {
  const struct {
    std::string name;
    std::string common_name;
    std::vector<SubjectName> names;
    bool by_name;
    bool by_address;
    std::string shows;  // in both refusals
  } cases[] = {
      {"cn_only", std::string(kHost), {}, false, false, "common name is never used"},
      {"cn_ip", "127.0.0.1", {}, false, false, "common name is never used"},
      {"dns_san",
       "x",
       {{NameKind::kDns, std::string(kHost)}},
       true,
       false,
       "DNS `aggregator.fed.example`"},
      {"ip_san", "x", {{NameKind::kIp, kLoopback}}, false, true, "IP `127.0.0.1`"},
      {"ip_as_dns", "x", {{NameKind::kDns, "127.0.0.1"}}, false, false, "DNS `127.0.0.1`"},
      {"cn_right_san_wrong",
       std::string(kHost),
       {{NameKind::kDns, "other.fed.example"}},
       false,
       false,
       "DNS `other.fed.example`"},
      {"wildcard", "x", {{NameKind::kDns, "*.fed.example"}}, false, false, "DNS `*.fed.example`"},
      {"email_san",
       "x",
       {{NameKind::kEmail, std::string(kHost)}},
       false,
       false,
       "e-mail `aggregator.fed.example`"},
      {"longer_name",
       "x",
       {{NameKind::kDns, "aggregator.fed.example.evil.example"}},
       false,
       false,
       "DNS `aggregator.fed.example.evil.example`"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const std::string pem = ServerPem(c.common_name, c.names);
    const Status by_name = CheckHost(pem, kHost);
    const Status by_address = CheckHost(pem, "127.0.0.1");
    CHECK(by_name.ok() == c.by_name);
    CHECK(by_address.ok() == c.by_address);
    for (const Status& status : {by_name, by_address}) {
      if (!status.ok()) {
        CAPTURE(ToString(status));
        CHECK(status.code() == StatusCode::kUnauthenticated);
        CHECK(Message(status).find(c.shows) != std::string_view::npos);
        CHECK(Message(status).find("URI `" + kUri + "`") != std::string_view::npos);
      }
    }
    if (!by_name.ok()) {
      CHECK(Message(by_name).find("not for DNS `aggregator.fed.example`") !=
            std::string_view::npos);
    }
    if (!by_address.ok()) {
      CHECK(Message(by_address).find("not for IP `127.0.0.1`") != std::string_view::npos);
    }
  }
}

TEST_CASE("CheckHost: spellings of one host are one host") {
  const std::string pem = ServerPem("x", {{NameKind::kDns, "Aggregator.Fed.Example"},
                                          {NameKind::kIp, std::string(15, '\0') + '\1'}});
  CHECK(CheckHost(pem, "aggregator.fed.example").ok());
  CHECK(CheckHost(pem, "AGGREGATOR.fed.example.").ok());
  CHECK(CheckHost(pem, "::1").ok());
  CHECK(CheckHost(pem, "0:0:0:0:0:0:0:1").ok());
  CHECK_FALSE(CheckHost(pem, "::2").ok());
  CHECK_FALSE(CheckHost(pem, "fed.example").ok());
}

TEST_CASE("CheckHost: an empty host, a NUL and a pattern match nothing") {
  const std::string nul_name = std::string("aggregator.fed.example\0.evil.example", 36);
  const std::string pem = ServerPem(
      "x", {{NameKind::kDns, ""}, {NameKind::kDns, nul_name}, {NameKind::kDns, "*.fed.example"}});
  CHECK_FALSE(CheckHost(pem, "").ok());
  CHECK_FALSE(CheckHost(pem, ".").ok());
  CHECK_FALSE(CheckHost(pem, "aggregator.fed.example").ok());
  CHECK_FALSE(CheckHost(pem, "*.fed.example").ok());
  CHECK_FALSE(CheckHost("not PEM", "fed.example").ok());
}

}  // namespace
}  // namespace domicile::crypto
