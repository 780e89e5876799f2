#include "base/clock.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "base/text.h"

namespace domicile {

namespace {

// Reads exactly `digits` decimal digits at `position` and moves past them.
bool ReadDigits(std::string_view text, std::size_t& position, std::size_t digits, int& value) {
  if (text.size() < position + digits) {
    return false;
  }
  value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const char c = text[position + i];
    if (c < '0' || c > '9') {
      return false;
    }
    value = value * 10 + (c - '0');
  }
  position += digits;
  return true;
}

bool ReadChar(std::string_view text, std::size_t& position, char wanted) {
  if (position >= text.size() || text[position] != wanted) {
    return false;
  }
  ++position;
  return true;
}

// The digits after the point, as nanoseconds.
bool ReadFraction(std::string_view text, std::size_t& position, std::int64_t& nanoseconds) {
  nanoseconds = 0;
  int digits = 0;
  while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
    if (++digits > 9) {
      return false;
    }
    nanoseconds = nanoseconds * 10 + (text[position++] - '0');
  }
  for (int i = digits; i < 9; ++i) {
    nanoseconds *= 10;
  }
  return digits > 0;
}

}  // namespace

WallTime SystemClock::Now() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}

MonotonicTime SystemClock::Monotonic() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now());
}

std::string PrintTime(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<long>(clock.hours().count()),
                static_cast<long>(clock.minutes().count()),
                static_cast<long>(clock.seconds().count()),
                static_cast<long>(clock.subseconds().count()));
  return text.data();
}

StatusOr<WallTime> ParseTime(std::string_view text) {
  const Status bad =
      Error(StatusCode::kInvalidArgument,
            "`" + Visible(text, 40) + "` is not a UTC time such as `2026-12-01T09:30:00Z`");
  std::size_t at = 0;
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::int64_t nanoseconds = 0;
  const bool fields =
      ReadDigits(text, at, 4, year) && ReadChar(text, at, '-') && ReadDigits(text, at, 2, month) &&
      ReadChar(text, at, '-') && ReadDigits(text, at, 2, day) && ReadChar(text, at, 'T') &&
      ReadDigits(text, at, 2, hour) && ReadChar(text, at, ':') && ReadDigits(text, at, 2, minute) &&
      ReadChar(text, at, ':') && ReadDigits(text, at, 2, second);
  if (!fields || (at < text.size() && text[at] == '.' &&
                  !(ReadChar(text, at, '.') && ReadFraction(text, at, nanoseconds)))) {
    return bad;
  }
  if (!ReadChar(text, at, 'Z') || at != text.size()) {
    return bad;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // 2262 is where a 64-bit count of nanoseconds ends.
  if (!date.ok() || year < 1970 || year > 2261 || hour > 23 || minute > 59 || second > 59) {
    return bad;
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second) +
         std::chrono::nanoseconds(nanoseconds);
}

}  // namespace domicile
