#include "cli/demo/example_dates.h"

#include <array>
#include <chrono>
#include <vector>

#include "base/text.h"

namespace domicile::cli {

namespace {

constexpr std::size_t kDateLength = 10;  // 2026-11-30

bool HasMovingKey(std::string_view line) {
  constexpr std::array<std::string_view, 3> kKeys = {"not_before", "expires", "valid_until"};
  const std::string_view key = StripWhitespace(line.substr(0, line.find('=')));
  for (const std::string_view moving : kKeys) {
    if (key == moving || (key.starts_with("refs.") && key.ends_with(moving))) {
      return true;
    }
  }
  return false;
}

std::string MoveLine(std::string_view line, std::chrono::days by) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || !HasMovingKey(line)) {
    return std::string(line);
  }
  const std::size_t begin = line.find_first_not_of(' ', equals + 1);
  const StatusOr<WallTime> date =
      begin == std::string_view::npos
          ? StatusOr<WallTime>(WallTime{})
          : ParseTime(std::string(line.substr(begin, kDateLength)) + "T00:00:00Z");
  if (begin == std::string_view::npos || !date.ok()) {
    return std::string(line);
  }
  return std::string(line.substr(0, begin)) + PrintTime(*date + by).substr(0, kDateLength) +
         std::string(line.substr(begin + kDateLength));
}

}  // namespace

WallTime ExamplesWritten() {
  using std::chrono::November;
  return std::chrono::sys_days(std::chrono::year(2026) / November / 30);
}

std::string MoveExampleDates(std::string_view toml, WallTime now) {
  const auto by = std::chrono::floor<std::chrono::days>(now - ExamplesWritten());
  if (by <= std::chrono::days(0)) {
    return std::string(toml);
  }
  std::string moved = "# Copied for the demonstration, its periods moved by " +
                      std::to_string(by.count()) + " days.\n";
  const std::vector<std::string_view> lines = Split(toml, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    moved += (i == 0 ? "" : "\n") + MoveLine(lines[i], by);
  }
  return moved;
}

}  // namespace domicile::cli
