#include "policy/language/duration.h"

#include <string>

#include <doctest/doctest.h>

namespace domicile::policy {

TEST_CASE("Duration: a number and a unit are read, and printed in the largest whole unit") {
  struct Case {
    std::string text;
    std::int64_t seconds;
    std::string printed;
  };
  const Case cases[] = {
      {"1s", 1, "1s"},
      {"30s", 30, "30s"},
      {"60s", 60, "1m"},
      {"90m", 5400, "90m"},
      {"24h", 86'400, "1d"},
      {"90d", 7'776'000, "90d"},
      {"366d", 31'622'400, "1y"},
      {"6y", 189'734'400, "6y"},
      {"1000y", 31'622'400'000, "1000y"},
      {"999999999s", 999'999'999, "999999999s"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto value = ParseDuration(c.text);
    REQUIRE(value.ok());
    CHECK(value->count() == c.seconds);
    CHECK(PrintDuration(*value) == c.printed);
    CHECK(ParseDuration(PrintDuration(*value)) == value);
  }
}

TEST_CASE("Duration: nothing else is one") {
  for (const std::string text :
       {"",     "s",     "30",         "0s",          "00s",
        "01h",  "-1d",   "+1d",        "1.5h",        "1h30m",
        " 1h",  "1h ",   "1 h",        "1H",          "1w",
        "1mo",  "1001y", "999999999y", "9999999999s", "99999999999999999999s",
        "1e3s", "life",  "0x1s",       "\u0661s"}) {
    CAPTURE(text);
    CHECK(ParseDuration(text).status().code() == StatusCode::kInvalidArgument);
  }
}

}  // namespace domicile::policy
