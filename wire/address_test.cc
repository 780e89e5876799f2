#include "wire/address.h"

#include <doctest/doctest.h>

namespace domicile::wire {
namespace {

TEST_CASE("Address: a host and a port are read, and printed as they were") {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  const Case cases[] = {
      {"aggregator.example:7443", "aggregator.example", 7443},
      {"127.0.0.1:0", "127.0.0.1", 0},
      {"[::1]:7443", "::1", 7443},
      {"localhost:65535", "localhost", 65535},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto address = ParseAddress(c.text);

    REQUIRE(address.ok());
    CHECK(address->host == c.host);
    CHECK(address->port == c.port);
    CHECK(PrintAddress(*address) == c.text);
  }
}

TEST_CASE("Address: anything else is refused") {
  for (const char* text : {"", "host", "host:", ":7443", "host:65536", "host:-1", "host:7 443",
                           "::1:7443", "[::1]", "[host]:1", "ho st:1", "a/b:1", "https://a:1"}) {
    CAPTURE(text);
    CHECK(ParseAddress(text).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Address: this machine is known by its spelling") {
  CHECK(IsLoopback("localhost"));
  CHECK(IsLoopback("127.0.0.1"));
  CHECK(IsLoopback("::1"));
  CHECK_FALSE(IsLoopback("128.0.0.1"));
  CHECK_FALSE(IsLoopback("localhost.example"));
}

}  // namespace
}  // namespace domicile::wire
