#include "policy/language/duration.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"

namespace domicile::policy {
namespace {

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr std::int64_t kDay = 86'400;
// From large to small. A year is the longest there is, so that a time to keep is never cut short.
constexpr std::array kUnits = {Unit{'y', 366 * kDay}, Unit{'d', kDay}, Unit{'h', 3600},
                               Unit{'m', 60}, Unit{'s', 1}};
constexpr std::int64_t kLongest = std::int64_t{1000} * 366 * kDay;
constexpr std::size_t kMostDigits = 9;  // times the longest unit, far below 2^63

}  // namespace

StatusOr<Duration> ParseDuration(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + Visible(text, 24) + "` is not a duration: " + std::string(why));
  };
  const auto digits = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return c < '0' || c > '9'; }) -
      text.begin());
  const auto* const unit =
      std::find_if(kUnits.begin(), kUnits.end(), [text, digits](const Unit& each) {
        return text.size() == digits + 1 && text.back() == each.letter;
      });
  if (digits == 0 || unit == kUnits.end()) {
    return wrong("write a whole number and one of s, m (minutes), h, d, y, such as \"90d\"");
  }
  if (text.front() == '0') {
    return wrong("it must be more than nothing, without a leading zero");
  }
  const StatusOr<std::int64_t> count =
      digits <= kMostDigits ? ParseInt64(text.substr(0, digits)) : kLongest + 1;
  if (!count.ok() || *count > kLongest / unit->seconds) {
    return wrong("it must be at most 1000y");
  }
  return Duration(*count * unit->seconds);
}

std::string PrintDuration(Duration value) {
  DOMICILE_CHECK(value.count() > 0 && value.count() <= kLongest);
  for (const Unit& unit : kUnits) {
    if (value.count() % unit.seconds == 0) {
      return std::to_string(value.count() / unit.seconds) + unit.letter;
    }
  }
  return {};  // not reached: every span is a whole number of seconds
}

}  // namespace domicile::policy
