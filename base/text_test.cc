#include "base/text.h"

#include <clocale>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile {
namespace {

TEST_CASE("NearestSpelling: one typing slip is found, another word is not") {
  const std::vector<std::string> known = {"quorum", "count", "deadline_seconds"};

  CHECK(NearestSpelling("quroum", known) == "quorum");
  CHECK(NearestSpelling("cuont", known).empty());  // two changes in five letters
  CHECK(NearestSpelling("conut_", known).empty());
  CHECK(NearestSpelling("deadline_second", known) == "deadline_seconds");
  CHECK(NearestSpelling("weather", known).empty());
  CHECK(NearestSpelling("x", std::vector<std::string>{}).empty());
}

TEST_CASE("NearestSpellings: all that are as near as the nearest are named, in order") {
  const std::vector<std::string_view> known = {"US-KY", "US-NY", "US-OH", "US-WY"};

  CHECK(NearestSpellings("US-XY", known) == std::vector<std::string>{"US-KY", "US-NY", "US-WY"});
  CHECK(NearestSpellings("US-OH", known) == std::vector<std::string>{"US-OH"});
  CHECK(NearestSpellings("weather", known).empty());
}

TEST_CASE("NearestSpelling: a word of megabytes is far from everything, at once") {
  const std::string word(8'000'000, 'a');

  CHECK(NearestSpelling(word, std::vector<std::string>(1'000, "count")).empty());
}

TEST_CASE("Visible: bytes that do not print are shown as numbers, and long texts are cut") {
  CHECK(Visible("plain text") == "plain text");
  CHECK(Visible("no\r") == "no\\x0d");
  CHECK(Visible("\xEF\xBB\xBFid") == "\\xef\\xbb\\xbfid");
  CHECK(Visible("\x1b[2J") == "\\x1b[2J");
  CHECK(Visible("abcdef", 3) == "abc...");
  CHECK(Visible("abc", 3) == "abc");
}

TEST_CASE("Split, Join, StripWhitespace") {
  CHECK(Split("a,b,,c", ',') == std::vector<std::string_view>{"a", "b", "", "c"});
  CHECK(Split("", ',') == std::vector<std::string_view>{""});
  CHECK(Split(",", ',') == std::vector<std::string_view>{"", ""});
  CHECK(Join(std::vector<std::string>{"a", "b"}, ", ") == "a, b");
  CHECK(Join(std::vector<std::string>{}, ", ").empty());
  CHECK(StripWhitespace(" \t a b\r\n") == "a b");
  CHECK(StripWhitespace(" \n").empty());
}

TEST_CASE("ParseDouble: the whole text, in one form") {
  CHECK(ParseDouble("5.6").value() == 5.6);
  CHECK(ParseDouble("-0.25e2").value() == -25);
  CHECK(ParseDouble("1e308").value() == 1e308);

  for (const std::string_view bad : {"", " 1", "1 ", "+1", "1,5", "1.5x", "0x10", "inf", "-inf",
                                     "nan", "NaN", "1_000", "1.234,5", "e5", "-", "."}) {
    CAPTURE(bad);
    CHECK(ParseDouble(bad).status().code() == StatusCode::kInvalidArgument);
  }
  CHECK(ParseDouble("1e400").status().code() == StatusCode::kOutOfRange);
}

TEST_CASE("ParseInt64 and ParseUint64: ranges and form") {
  CHECK(ParseInt64("-9223372036854775808").value() == std::numeric_limits<std::int64_t>::min());
  CHECK(ParseInt64("9223372036854775808").status().code() == StatusCode::kOutOfRange);
  CHECK(ParseUint64("18446744073709551615").value() == UINT64_MAX);
  CHECK(ParseUint64("-1").status().code() == StatusCode::kInvalidArgument);
  CHECK(ParseInt64("1.0").status().code() == StatusCode::kInvalidArgument);
  CHECK(ParseInt64("").status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("PrintDouble: the shortest text that reads back to the same bits") {
  CHECK(PrintDouble(0.1) == "0.1");
  CHECK(PrintDouble(4) == "4");
  CHECK(PrintDouble(1e30) == "1e+30");
  SeededRandom random(11);
  for (int i = 0; i < 2'000; ++i) {
    const double value = std::ldexp(static_cast<double>(random.Next64()),
                                    static_cast<int>(random.Below(1'900)) - 1'000);
    CHECK(ParseDouble(PrintDouble(value)).value() == value);
  }
}

TEST_CASE("Numbers: the process locale does not matter") {
  // Where no locale with a decimal comma is installed, the C locale stays and nothing can differ.
  const char* before = std::setlocale(LC_ALL, nullptr);
  const std::string kept = before == nullptr ? "C" : before;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
    std::setlocale(LC_ALL, name);
    CAPTURE(name);
    CHECK(ParseDouble("7.25").value() == 7.25);
    CHECK_FALSE(ParseDouble("7,25").ok());
    CHECK(PrintDouble(1234567.5) == "1234567.5");
  }
  std::setlocale(LC_ALL, kept.c_str());
}

TEST_CASE("MatchesPattern: a star stands for any characters") {
  CHECK(MatchesPattern("encoder.layer.*.weight", "encoder.layer.3.output.weight"));
  CHECK(MatchesPattern("*", ""));
  CHECK(MatchesPattern("*a*b", "xaxbxb"));
  CHECK(MatchesPattern("bias", "bias"));
  CHECK_FALSE(MatchesPattern("*a*b", "xaxbx"));
  CHECK_FALSE(MatchesPattern("bias", "norm.bias"));
  CHECK_FALSE(MatchesPattern("", "x"));
}

}  // namespace
}  // namespace domicile
