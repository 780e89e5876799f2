#include "base/clock.h"

#include <doctest/doctest.h>

namespace domicile {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST_CASE("PrintTime: milliseconds in UTC, rounded down") {
  CHECK(PrintTime(WallTime{}) == "1970-01-01T00:00:00.000Z");
  CHECK(PrintTime(WallTime(seconds(1'796'031'000)) + milliseconds(250)) ==
        "2026-11-30T09:30:00.250Z");
  CHECK(PrintTime(WallTime(nanoseconds(1'999'999))) == "1970-01-01T00:00:00.001Z");
  CHECK(PrintTime(WallTime(seconds(951'782'399))) == "2000-02-28T23:59:59.000Z");
  CHECK(PrintTime(WallTime(seconds(951'782'400))) == "2000-02-29T00:00:00.000Z");
}

TEST_CASE("ParseTime: 0 to 9 digits of fraction") {
  const WallTime whole(seconds(1'796'031'000));

  CHECK(ParseTime("2026-11-30T09:30:00Z").value() == whole);
  CHECK(ParseTime("2026-11-30T09:30:00.5Z").value() == whole + milliseconds(500));
  CHECK(ParseTime("2026-11-30T09:30:00.123456789Z").value() == whole + nanoseconds(123'456'789));
  CHECK(ParseTime("2261-12-31T23:59:59Z").ok());
}

TEST_CASE("ParseTime: what is not a UTC time of this form is refused") {
  for (const char* bad :
       {"", "2026-11-30", "2026-11-30T09:30:00", "2026-11-30T09:30:00+00:00",
        "2026-11-30 09:30:00Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-11-31T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T09:60:00Z",
        "2026-12-31T23:59:60Z", "2026-11-30T09:30:00.Z", "2026-11-30T09:30:00.1234567890Z",
        "1969-12-31T23:59:59Z", "2262-01-01T00:00:00Z", "2026-11-30T09:30:00Zx",
        "-026-11-30T09:30:00Z", "2026-11-30t09:30:00z"}) {
    CAPTURE(bad);
    CHECK(ParseTime(bad).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("ParseTime: an error shows the bytes it was given, not what a terminal makes of them") {
  const StatusOr<WallTime> parsed = ParseTime("\x1b[2J2026");

  CHECK(Message(parsed.status()).find("`\\x1b[2J2026`") == 0);
}

TEST_CASE("PrintTime and ParseTime: inverses to the millisecond") {
  for (std::int64_t day = 0; day < 106'000; day += 17) {
    const WallTime time{seconds(day * 86'400 + day % 86'400) + milliseconds(day % 1'000)};

    CHECK(ParseTime(PrintTime(time)).value() == time);
  }
}

TEST_CASE("FakeClock: both times move when told; the wall alone when set") {
  FakeClock clock(WallTime(seconds(100)));
  const MonotonicTime before = clock.Monotonic();

  clock.Advance(seconds(5));
  CHECK(clock.Now() == WallTime(seconds(105)));
  CHECK(clock.Monotonic() - before == seconds(5));

  clock.SetWall(WallTime(seconds(1)));
  CHECK(clock.Now() == WallTime(seconds(1)));
  CHECK(clock.Monotonic() - before == seconds(5));
}

TEST_CASE("SystemClock: monotonic time does not go back, and the wall is in this century") {
  const SystemClock clock;
  const MonotonicTime first = clock.Monotonic();

  CHECK(clock.Monotonic() >= first);
  CHECK(clock.Now() > ParseTime("2020-01-01T00:00:00Z").value());
  CHECK(clock.Now() < ParseTime("2100-01-01T00:00:00Z").value());
}

}  // namespace
}  // namespace domicile
