// tests/policy_malformed/: files that are wrong, each with its exact error.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "policy/language/facts.h"
#include "policy/language/keys.h"
#include "policy/language/parse.h"

namespace domicile::policy {
namespace {

const std::string kFolder = std::string(DOMICILE_SOURCE_DIR) + "/tests/policy_malformed/";
constexpr std::string_view kHead = "# error: ";
constexpr std::string_view kValid = "none";

struct Case {
  std::string name;    // `allow_models_name.federation.toml`
  std::string source;  // `federation`, `aggregator`, `site`, `facts`
  std::string text;
  std::string want;  // the error without the name of the file
};

std::vector<Case> ReadCases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    Case c;
    c.name = entry.path().filename().string();
    if (entry.path().extension() != ".toml") {
      continue;
    }
    c.source = entry.path().stem().extension().string().substr(1);
    auto text = ReadFile(entry.path().string(), 1U << 16U);
    REQUIRE_MESSAGE(text.ok(), c.name);
    c.text = *std::move(text);
    REQUIRE_MESSAGE(c.text.starts_with(kHead), c.name);
    c.want = c.text.substr(kHead.size(), c.text.find('\n') - kHead.size());
    cases.push_back(std::move(c));
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

Status Read(const Case& c) {
  if (c.source == "facts") {
    return ParseFacts(c.text, c.name).status();
  }
  return ParsePolicy(c.text, c.name, FromCode<PolicySource>(c.source).value_or(PolicySource::kNone))
      .status();
}

// The key that an error is about, as keys.h has it; empty if the error is about no known key.
std::string KeyOf(const std::string& error) {
  const std::size_t begin = error.find(": `");
  const std::size_t end = begin == std::string::npos ? begin : error.find('`', begin + 3);
  if (end == std::string::npos) {
    return {};
  }
  std::string key;
  bool in_index = false;
  for (const char c : error.substr(begin + 3, end - begin - 3)) {
    in_index = in_index ? c != ']' : c == '[';
    if (!in_index && c != ']') {
      key += c;
    }
  }
  return key;
}

}  // namespace

TEST_CASE("Malformed: every file gives exactly the error in its first line") {
  const std::vector<Case> cases = ReadCases();

  CHECK(cases.size() >= 200);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Status status = Read(c);
    const std::string message(Message(status));
    CHECK((status.ok() ? std::string(kValid) : message.substr(message.find(':') + 1)) == c.want);
    if (!status.ok()) {
      CHECK(status.code() == StatusCode::kInvalidArgument);
      CHECK(message.starts_with(c.name + ":"));
    }
  }
}

TEST_CASE("Malformed: every source has a file without a mistake, from which the others differ") {
  std::set<std::string> valid;
  for (const Case& c : ReadCases()) {
    if (c.want == kValid) {
      valid.insert(c.name);
    }
  }

  CHECK(valid == std::set<std::string>{"valid.aggregator.toml", "valid.facts.toml",
                                       "valid.federation.toml", "valid.site.toml"});
}

TEST_CASE("Malformed: every key of the language is wrong in some file") {
  std::set<std::string> wrong;
  for (const Case& c : ReadCases()) {
    wrong.insert(KeyOf(c.want));
  }

  for (const std::string_view key : kPolicyKeys) {
    CAPTURE(key);
    CHECK(wrong.contains(std::string(key)));
  }
  for (const std::string_view key : kFactsKeys) {
    CAPTURE(key);
    CHECK(wrong.contains(std::string(key)));
  }
}

TEST_CASE("Malformed: every kind of error is given by some file") {
  constexpr std::string_view kKinds[] = {
      "Error while parsing",
      "unknown key",
      "keys here are",
      "it belongs at",
      "did you mean `",
      "` or `",
      "(is `",
      "is missing",
      "must be a string, in quotes",
      "must be a list of strings",
      "must be a table",
      "must be an array of tables",
      "must be true or false",
      "must be a whole number from",
      "must be a number from",
      "must be a date",
      "is not a UTC time",
      "must not be empty",
      "is not a code of this key",
      "; known are",
      "has this twice",
      "is used twice",
      "names the role",
      "is not a duration: write",
      "is not a duration: it must be more than nothing",
      "is not a duration: it must be at most 1000y",
      "must be 64 lower-case hexadecimal digits",
      "must have only digests",
      "must have only names of keys",
      "must have only names of sites",
      "must have only `sites`, `operator`",
      "must be an organisation's name",
      "is not a dataset alias",
      "must be 1 to 80 lower-case letters",
      "must be 1 to 40 letters",
      "must be after",
      "must be at most 366 days after",
      "must not be more than the number of signers",
      "must name the keys",
      "names fewer keys",
      "belongs in a site policy",
      "names no [[dataset]]",
      "this program reads",
      "leave it out",
      "beside other categories",
      "is missing: a category is special",
      "but no category is special",
      "needs valid_until",
      "needs a ref",
      "is a bloc, not a place",
      "has a code of its own",
      "has no such subdivision",
      "the country stands first",
      "codes are upper case",
      "use the two-letter code",
      "not ASCII",
      "white space",
      "not a list",
      "no wildcard",
      "user-assigned",
      "a continent is not a place",
      "this bloc is not defined",
      "an unset place never means a default",
  };
  const std::vector<Case> cases = ReadCases();
  for (const std::string_view kind : kKinds) {
    CAPTURE(kind);
    CHECK(std::any_of(cases.begin(), cases.end(),
                      [kind](const Case& c) { return c.want.find(kind) != std::string::npos; }));
  }
}

}  // namespace domicile::policy
