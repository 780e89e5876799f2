#include "base/toml.h"

#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace domicile {
namespace {

TomlDocument MustParse(std::string_view text) {
  StatusOr<TomlDocument> document = TomlDocument::Parse(text, "f.toml");
  REQUIRE(document.ok());
  return *std::move(document);
}

std::string ErrorOf(TomlDocument& document) { return std::string(Message(document.Finish())); }

constexpr std::string_view kSample = R"(name = "x"
size = 3
share = 0.5
flag = true
day = 2026-12-01
moment = 2026-12-01T09:30:00.25Z
words = ["a", "b"]
numbers = [1, 2]

[inner]
depth = 2

[[part]]
id = "p0"
[[part]]
id = "p1"
)";

TEST_CASE("TomlDocument: reads every kind of field, and everything asked for is known") {
  TomlDocument document = MustParse(kSample);
  TomlTable root = document.Root();

  CHECK(root.String("name") == "x");
  CHECK(root.Int("size", 0, 3) == 3);
  CHECK(root.Double("share", 0, 1) == 0.5);
  CHECK(root.Bool("flag"));
  CHECK(root.Time("day") == ParseTime("2026-12-01T00:00:00Z").value());
  CHECK(root.Time("moment") == ParseTime("2026-12-01T09:30:00.25Z").value());
  CHECK(root.Strings("words") == std::vector<std::string>{"a", "b"});
  CHECK(root.Ints("numbers", 1, 2) == std::vector<std::int64_t>{1, 2});
  CHECK(root.Doubles("numbers", 1, 2) == std::vector<double>{1, 2});
  CHECK(root.Table("inner").Int("depth", 0, 9) == 2);
  std::vector<TomlTable> parts = root.Tables("part");
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].String("id") == "p0");
  CHECK(parts[1].String("id") == "p1");
  CHECK(root.Tables("absent").empty());
  CHECK_FALSE(root.TryTable("nothing").has_value());
  CHECK_FALSE(root.TryTime("never").has_value());
  CHECK_FALSE(root.TryInts("none", 0, 1).has_value());
  CHECK(document.Finish().ok());
}

TEST_CASE("TomlDocument: a whole number serves where a decimal is wanted, and not the other way") {
  TomlDocument document = MustParse("a = 2\nb = 2.0\n");

  CHECK(document.Root().Double("a", 0, 5) == 2.0);
  document.Root().Int("b", 0, 5);

  CHECK(ErrorOf(document) == "f.toml:2:5: `b` must be a whole number from 0 to 5");
}

TEST_CASE("TomlDocument: errors name file, line, column and field") {
  struct Case {
    std::string name;
    void (*read)(TomlTable&);
    const char* want;
  };
  const Case cases[] = {
      {"mistyped", [](TomlTable& t) { t.String("size"); },
       "f.toml:2:8: `size` must be a string, in quotes"},
      {"out of range", [](TomlTable& t) { t.Int("size", 4, 9); },
       "f.toml:2:8: `size` must be a whole number from 4 to 9"},
      {"decimal out of range", [](TomlTable& t) { t.Double("share", 1, 2); },
       "f.toml:3:9: `share` must be a number from 1 to 2"},
      {"text for a number", [](TomlTable& t) { t.Double("name", 0, 2); },
       "f.toml:1:8: `name` must be a number from 0 to 2"},
      {"unbounded",
       [](TomlTable& t) { t.Double("name", 0, std::numeric_limits<double>::infinity()); },
       "f.toml:1:8: `name` must be a finite number in its range"},
      {"no bool", [](TomlTable& t) { t.Bool("size"); }, "f.toml:2:8: `size` must be true or false"},
      {"no time", [](TomlTable& t) { t.Time("name"); },
       "f.toml:1:8: `name` must be a date (2026-12-01) or a UTC time (2026-12-01T09:30:00Z)"},
      {"no list", [](TomlTable& t) { t.Strings("name"); },
       "f.toml:1:8: `name` must be a list of strings, such as [\"a\", \"b\"]"},
      {"list of numbers", [](TomlTable& t) { t.Strings("numbers"); },
       "f.toml:8:11: `numbers` must be a list of strings, such as [\"a\", \"b\"]"},
      {"numbers out of range", [](TomlTable& t) { t.Ints("numbers", 0, 1); },
       "f.toml:8:11: `numbers` must be a list of whole numbers from 0 to 1"},
      {"decimals out of range", [](TomlTable& t) { t.Doubles("numbers", 0, 1.5); },
       "f.toml:8:11: `numbers` must be a list of numbers from 0 to 1.5"},
      {"no decimals", [](TomlTable& t) { t.Doubles("words", 0, 1); },
       "f.toml:7:9: `words` must be a list of numbers from 0 to 1"},
      {"no list of decimals", [](TomlTable& t) { t.Doubles("nothing", 0, 1); },
       "f.toml:1:1: `nothing` is missing"},
      {"no table", [](TomlTable& t) { t.Table("name"); }, "f.toml:1:8: `name` must be a table"},
      {"no array of tables", [](TomlTable& t) { t.Tables("inner"); },
       "f.toml:10:1: `inner` must be an array of tables, written [[inner]]"},
      {"inside a table", [](TomlTable& t) { t.Table("inner").Int("depth", 5, 9); },
       "f.toml:11:9: `inner.depth` must be a whole number from 5 to 9"},
      {"inside an array", [](TomlTable& t) { t.Tables("part")[1].Fail("id", "is odd"); },
       "f.toml:16:6: `part[1].id` is odd"},
      {"missing from a table", [](TomlTable& t) { t.Table("inner").Bool("gone"); },
       "f.toml:10:1: `inner.gone` is missing"},
      {"merged", [](TomlTable& t) { t.Merge("size", Error(StatusCode::kNotFound, "no such x")); },
       "f.toml:2:8: `size` is wrong: no such x"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    TomlDocument document = MustParse(kSample);
    TomlTable root = document.Root();
    c.read(root);
    CHECK(document.Finish().code() == StatusCode::kInvalidArgument);
    CHECK(ErrorOf(document) == c.want);
  }
}

TEST_CASE("TomlDocument: the first error stays") {
  TomlDocument document = MustParse(kSample);
  document.Root().Bool("size");
  document.Root().String("flag");

  CHECK(ErrorOf(document).find("f.toml:2:8:") == 0);
}

TEST_CASE("TomlDocument: infinities and NaN are no numbers") {
  for (const char* text : {"a = inf\n", "a = -inf\n", "a = nan\n"}) {
    CAPTURE(text);
    TomlDocument document = MustParse(text);
    constexpr double kEnd = std::numeric_limits<double>::infinity();
    document.Root().Double("a", -kEnd, kEnd);
    CHECK_FALSE(document.Finish().ok());
  }
}

TEST_CASE("TomlDocument: an unknown key is an error at its place, with the nearest spelling") {
  TomlDocument document = MustParse("[rounds]\ncount = 1\nquroum = 2\nzzz = 3\n");
  TomlTable rounds = document.Root().Table("rounds");
  rounds.Int("count", 0, 9);
  rounds.TryInt("quorum", 0, 9);

  CHECK(ErrorOf(document) ==
        "f.toml:3:1: unknown key `rounds.quroum` (did you mean `rounds.quorum`?)");
}

TEST_CASE("TomlDocument: a missing key that is there misspelt is shown") {
  TomlDocument document = MustParse("[rounds]\ncount = 1\nquroum = 2\n");
  TomlTable rounds = document.Root().Table("rounds");
  rounds.Int("count", 0, 9);
  rounds.Int("quorum", 0, 9);

  CHECK(ErrorOf(document) == "f.toml:3:1: `rounds.quorum` is missing (is `quroum` meant?)");
}

TEST_CASE("TomlDocument: unknown tables, and keys inside arrays of tables, are found") {
  TomlDocument table = MustParse("[other]\na = 1\n");
  TomlDocument element = MustParse("[[part]]\nid = 1\n[[part]]\nid = 2\nextra = 3\n");
  for (TomlTable& part : element.Root().Tables("part")) {
    part.Int("id", 0, 9);
  }

  CHECK(ErrorOf(table) == "f.toml:1:2: unknown key `other`");
  CHECK(ErrorOf(element) == "f.toml:5:1: unknown key `part.extra`; keys here are `id`");
}

TEST_CASE("TomlDocument: times with an offset or without a zone are refused") {
  for (const char* text : {"t = 2026-12-01T09:30:00+01:00\n", "t = 2026-12-01T09:30:00\n",
                           "t = 09:30:00\n", "t = \"2026-12-01\"\n"}) {
    CAPTURE(text);
    TomlDocument document = MustParse(text);
    document.Root().Time("t");
    CHECK_FALSE(document.Finish().ok());
  }
}

TEST_CASE("TomlDocument: what is not TOML is refused with its place") {
  struct Case {
    const char* text;
    std::string place;
  };
  const Case cases[] = {{"a = \n", "f.toml:1:"},         {"a = 1\na = 2\n", "f.toml:2:"},
                        {"\n\nb = [1, \n", "f.toml:"},   {"a = NO\n", "f.toml:1:"},
                        {"a = \"\xFF\"\n", "f.toml:1:"}, {"[x\n", "f.toml:1:"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const StatusOr<TomlDocument> document = TomlDocument::Parse(c.text, "f.toml");
    CHECK(document.status().code() == StatusCode::kInvalidArgument);
    CHECK(Message(document.status()).find(c.place) == 0);
  }
}

TEST_CASE("TomlDocument: places and keys for messages of others") {
  TomlDocument document = MustParse("b = 1\na = 2\n\n[t]\nx = 1\n");
  const TomlTable root = document.Root();

  CHECK(root.Keys() == std::vector<std::string>{"b", "a", "t"});
  CHECK(root.Position("a") == "f.toml:2:5");
  CHECK(root.Line("a") == 2);
  CHECK(root.Has("b"));
  CHECK_FALSE(root.Has("c"));
  CHECK(document.Root().Table("t").Line() == 4);
}

TEST_CASE("TomlDocument: a key in the wrong table is told where it belongs") {
  constexpr std::string_view kLanguage[] = {"rule.id", "rule.limit.rounds", "policy.rounds_up"};
  TomlDocument document = MustParse("[[rule]]\nid = 1\nrounds = 3\n");
  for (TomlTable& rule : document.Root().Tables("rule")) {
    rule.Int("id", 0, 9);
  }

  CHECK(Message(document.Finish(kLanguage)) ==
        "f.toml:3:1: unknown key `rule.rounds` (it belongs at `rule.limit.rounds`)");
}

TEST_CASE("TomlDocument: an error about a whole table names the table") {
  TomlDocument document = MustParse("[t]\nx = 1\n");
  TomlTable table = document.Root().Table("t");
  table.Fail("", "belongs elsewhere");

  CHECK(Message(document.Finish()) == "f.toml:1:1: `t` belongs elsewhere");
}

TEST_CASE("TomlDocument: a wrong item of a list is shown at its own place") {
  TomlDocument document = MustParse("[t]\nx = [\n  \"a\",\n  \"b\",\n]\ny = 1\n");
  TomlTable table = document.Root().Table("t");
  table.Strings("x");
  table.Int("y", 0, 9);

  table.FailItem("x", 1, "is not known");

  CHECK(Message(document.Finish()) == "f.toml:4:3: `t.x` is not known");
}

TEST_CASE("TomlDocument: an item that is not there is shown at its list, or at the table") {
  TomlDocument list = MustParse("x = [1]\n");
  list.Root().FailItem("x", 7, "is wrong");
  CHECK(Message(list.Finish()) == "f.toml:1:5: `x` is wrong");

  TomlDocument number = MustParse("y = 1\n");
  number.Root().FailItem("y", 0, "is wrong");
  CHECK(Message(number.Finish()) == "f.toml:1:5: `y` is wrong");
}

TEST_CASE("TomlDocument: a file that is not there is kNotFound and named") {
  const StatusOr<TomlDocument> document = TomlDocument::Read("/nonexistent/job.toml");

  CHECK(document.status().code() == StatusCode::kNotFound);
  CHECK(Message(document.status()).find("/nonexistent/job.toml") != std::string_view::npos);
}

}  // namespace
}  // namespace domicile
