#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <system_error>

namespace domicile {

namespace {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

template <typename T>
std::vector<std::string> Nearest(std::string_view word, std::span<const T> candidates) {
  std::size_t best = std::max<std::size_t>(1, word.size() / 3);
  std::vector<std::string> nearest;
  for (const std::string_view candidate : candidates) {
    // Their lengths alone may say that it is too far: this bounds the work on a very long word.
    const std::size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) > best) {
      continue;
    }
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest.clear();
    }
    if (distance == best) {
      nearest.emplace_back(candidate);
    }
  }
  return nearest;
}

template <typename T>
std::string FirstNearest(std::string_view word, std::span<const T> candidates) {
  const std::vector<std::string> nearest = Nearest(word, candidates);
  return nearest.empty() ? std::string() : nearest.front();
}

template <typename T>
StatusOr<T> ParseNumber(std::string_view text, std::string_view kind) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    return Error(StatusCode::kOutOfRange, "out of range");
  }
  if (error != std::errc{} || stop != end) {
    return Error(StatusCode::kInvalidArgument, "not " + std::string(kind));
  }
  return value;
}

}  // namespace

std::string NearestSpelling(std::string_view word, std::span<const std::string_view> candidates) {
  return FirstNearest(word, candidates);
}

std::string NearestSpelling(std::string_view word, std::span<const std::string> candidates) {
  return FirstNearest(word, candidates);
}

std::vector<std::string> NearestSpellings(std::string_view word,
                                          std::span<const std::string_view> candidates) {
  return Nearest(word, candidates);
}

std::string Visible(std::string_view text, std::size_t limit) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  if (text.size() > limit) {
    out += "...";
  }
  return out;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string_view StripWhitespace(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kWhite);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

std::string Join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) {
      text += separator;
    }
    text += part;
  }
  return text;
}

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // After a mismatch only the last `*` needs another try: what earlier ones took cannot help.
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

StatusOr<double> ParseDouble(std::string_view text) {
  ASSIGN_OR_RETURN(const double value, ParseNumber<double>(text, "a number"));
  if (!std::isfinite(value)) {
    return Error(StatusCode::kInvalidArgument, "not a finite number");
  }
  return value;
}

StatusOr<std::int64_t> ParseInt64(std::string_view text) {
  return ParseNumber<std::int64_t>(text, "a whole number");
}

StatusOr<std::uint64_t> ParseUint64(std::string_view text) {
  return ParseNumber<std::uint64_t>(text, "a whole number");
}

std::string PrintDouble(double value) {
  DOMICILE_CHECK(std::isfinite(value));
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  DOMICILE_CHECK(error == std::errc{});
  return {text.data(), end};
}

}  // namespace domicile
