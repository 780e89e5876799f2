#include "wire/tls.h"

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "tests/support/test_server.h"
#include "tests/support/tls_client.h"
#include "wire/internal/hello_probe.h"

namespace domicile::wire {
namespace {

using test::TlsConnect;
using test::TlsVersion;

TEST_CASE("Tls: a client of another library gets 1.3, and is refused with 1.2") {
  test::TestServer server;
  const test::TestParty site = server.authority.Site("charite");

  const auto with_13 = TlsConnect(server.Port(), TlsVersion::k13, site);
  const std::uint64_t before = FailedHandshakes();
  const auto with_12 = TlsConnect(server.Port(), TlsVersion::k12, site);

  CAPTURE(ToString(with_13.status()));
  CHECK(with_13.value_or("") == "TLSv1.3");
  CHECK(with_12.status().code() == StatusCode::kUnauthenticated);
  CHECK(FailedHandshakes() == before + 1);
}

TEST_CASE("Tls: a hello that offers 1.3 is answered, one that offers only 1.2 is not") {
  using internal::HelloAnswer;
  using internal::HelloVersion;
  test::TestServer server;
  const Address address = {"127.0.0.1", static_cast<std::uint16_t>(server.Port())};
  const auto patience = std::chrono::seconds(5);

  const auto to_13 = internal::TryHello(address, HelloVersion::kTls13, patience);
  const auto to_12 = internal::TryHello(address, HelloVersion::kTls12, patience);

  REQUIRE(to_13.ok());
  CHECK(*to_13 == HelloAnswer::kTaken);
  REQUIRE(to_12.ok());
  CHECK(*to_12 != HelloAnswer::kTaken);  // gRPC closes; others send an alert
  CHECK(CheckOnlyTls13(server.Server().Address()).ok());
}

TEST_CASE("Tls: the environment does not weaken it") {
  REQUIRE(RequireTls13().ok());
  const char* suites = std::getenv("GRPC_SSL_CIPHER_SUITES");
  REQUIRE(suites != nullptr);
  CHECK(std::string(suites) == "PSK-AES256-GCM-SHA384");
}

TEST_CASE("Tls: where nothing listens, the test of the server says so") {
  int port = 0;
  {
    test::TestServer server;
    port = server.Port();
  }
  CHECK(CheckOnlyTls13("127.0.0.1:" + std::to_string(port)).code() == StatusCode::kUnavailable);
}

TEST_CASE("Tls: answers to a hello are told apart by their first bytes") {
  using internal::HelloAnswer;
  using internal::ReadAnswer;
  CHECK(*ReadAnswer({}) == HelloAnswer::kNone);
  CHECK(*ReadAnswer(Bytes{21, 3, 3, 0, 2, 2, 70}) == HelloAnswer::kRefused);
  CHECK(*ReadAnswer(Bytes{22, 3, 3, 0, 90, 2, 0}) == HelloAnswer::kTaken);
  CHECK_FALSE(ReadAnswer(Bytes{22, 3, 3, 0, 90, 1}).ok());  // a hello is no answer
  CHECK_FALSE(ReadAnswer(AsBytes("HTTP/1.1 400 Bad Request")).ok());
  CHECK_FALSE(ReadAnswer(Bytes{21, 3}).ok());
}

}  // namespace
}  // namespace domicile::wire
