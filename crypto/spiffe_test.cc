#include <string>

#include <doctest/doctest.h>

#include "crypto/certificate.h"

namespace domicile::crypto {
namespace {

TEST_CASE("ParseSpiffeForm: the rules of the SPIFFE-ID standard") {
  const struct {
    std::string uri;
    bool fits;
  } cases[] = {
      {"spiffe://fed.example/worker/de/fra-1", true},
      {"spiffe://f/x", true},
      {"spiffe://fed_1.example/A.b_C-9", true},
      {"spiffe://fed.example/...", true},
      {"", false},
      {"spiffe://", false},
      {"spiffe:///path", false},
      {"spiffe://fed.example", false},
      {"spiffe://fed.example/", false},
      {"spiffe://fed.example/a/", false},
      {"spiffe://fed.example//a", false},
      {"spiffe://fed.example/a/./b", false},
      {"spiffe://fed.example/a/../b", false},
      {"spiffe://fed.example:443/a", false},
      {"spiffe://user@fed.example/a", false},
      {"spiffe://fed.example/a?x=1", false},
      {"spiffe://fed.example/a#f", false},
      {"spiffe://fed.example/a%2Fb", false},
      {"spiffe://Fed.example/a", false},
      {"SPIFFE://fed.example/a", false},
      {"https://fed.example/a", false},
      {" spiffe://fed.example/a", false},
      {"spiffe://fed.example/a b", false},
      {"spiffe://fed.example/caf\xC3\xA9", false},
      {std::string("spiffe://fed.example/a\0b", 24), false},
      {"spiffe://" + std::string(255, 'f') + "/a", true},
      {"spiffe://" + std::string(256, 'f') + "/a", false},
      {"spiffe://f/" + std::string(2037, 'a'), true},
      {"spiffe://f/" + std::string(2038, 'a'), false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.uri);
    CHECK(ParseSpiffeForm(c.uri).ok() == c.fits);
  }
}

TEST_CASE("ParseSpiffe: the four forms of this platform, and nothing else") {
  const struct {
    std::string uri;
    bool fits;
  } cases[] = {
      {"spiffe://fed.example/jurisdiction/DE/site/charite", true},
      {"spiffe://fed.example/jurisdiction/US-CA/site/ucsf-1", true},
      {"spiffe://fed.example/jurisdiction/IE/aggregator/main", true},
      {"spiffe://fed.example/operator/alice", true},
      {"spiffe://fed.example/auditor/dpa-berlin", true},
      {"spiffe://demo/operator/a", true},
      {"spiffe://fed.example/site/charite", false},
      {"spiffe://fed.example/aggregator/main", false},
      {"spiffe://fed.example/jurisdiction/DE/operator/alice", false},
      {"spiffe://fed.example/jurisdiction/DE/auditor/a", false},
      {"spiffe://fed.example/jurisdiction/DE/worker/a", false},
      {"spiffe://fed.example/jurisdiction/DE/none/a", false},
      {"spiffe://fed.example/jurisdiction/DE/site", false},
      {"spiffe://fed.example/jurisdiction/DE/site/a/b", false},
      {"spiffe://fed.example/Jurisdiction/DE/site/a", false},
      {"spiffe://fed.example/jurisdiction/de/site/a", false},
      {"spiffe://fed.example/jurisdiction/DEU/site/a", false},
      {"spiffe://fed.example/jurisdiction/US-/site/a", false},
      {"spiffe://fed.example/jurisdiction/US-CALI/site/a", false},
      {"spiffe://fed.example/jurisdiction/DE/site/Charite", false},
      {"spiffe://fed.example/jurisdiction/DE/site/a.b", false},
      {"spiffe://fed.example/jurisdiction/DE/site/-a", false},
      {"spiffe://fed.example/operator", false},
      {"spiffe://fed_example/operator/alice", false},
      {"spiffe://-fed/operator/alice", false},
      {"spiffe://fed..example/operator/alice", false},
      {"spiffe://fed.example/operator/" + std::string(63, 'a'), true},
      {"spiffe://fed.example/operator/" + std::string(64, 'a'), false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.uri);
    const auto name = ParseSpiffe(c.uri);
    CHECK(name.ok() == c.fits);
    if (name.ok()) {
      CHECK(PrintSpiffe(*name) == c.uri);
    }
  }
}

TEST_CASE("ParseSpiffe: the parts are where they belong") {
  const auto name = ParseSpiffe("spiffe://fed.example/jurisdiction/US-CA/site/ucsf");
  REQUIRE(name.ok());
  CHECK(name->federation == "fed.example");
  CHECK(name->jurisdiction == "US-CA");
  CHECK(name->role == Role::kSite);
  CHECK(name->name == "ucsf");
}

TEST_CASE("CheckFederationName: lower-case DNS names") {
  CHECK(CheckFederationName("health.example").ok());
  CHECK(CheckFederationName("demo").ok());
  for (const char* const name : {"", ".", "a.", "Health.example", "a b", "a+b", "a/b", "a_b"}) {
    CAPTURE(name);
    CHECK(CheckFederationName(name).code() == StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace domicile::crypto
