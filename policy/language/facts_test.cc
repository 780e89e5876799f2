#include "policy/language/facts.h"

#include <string>

#include <doctest/doctest.h>

#include "base/file.h"

namespace domicile::policy {
namespace {

const std::string kText = R"([facts]
id = "facts/test"
version = 3
expires = 2027-06-30

[[fact]]
id = "eu"
kind = "bloc"
bloc = "EU"
members = ["DE", "IE", "RE"]
from_date = 2013-07-01
source = "treaty"
checked_by = "counsel"
checked_on = 2026-11-30

[[fact]]
id = "eu-gb"
kind = "bloc"
bloc = "EU"
members = ["GB"]
from_date = 1973-01-01
until_date = 2020-02-01
source = "treaty"
checked_by = "counsel"
checked_on = 2026-11-30

[[fact]]
id = "ch"
kind = "adequacy"
regime = "eu-gdpr"
from = ["EU"]
to = ["CH"]
from_date = 2000-07-26
source = "2000/518/EC"
checked_by = "counsel"
checked_on = 2026-11-30
)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

WallTime At(std::string_view text) {
  const auto time = ParseTime(text);
  REQUIRE(time.ok());
  return *time;
}

Cover Inside(const Facts& facts, std::string_view area, std::string_view place,
             std::string_view time) {
  return Covers(*Area::Parse(area), *Jurisdiction::Parse(place), facts, At(time), nullptr);
}

}  // namespace

TEST_CASE("Facts: membership of a bloc depends on the date, and unknown is not no") {
  const auto facts = ParseFacts(kText, "facts.toml");
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));
  constexpr std::string_view kNow = "2026-12-01T00:00:00Z";

  CHECK(Inside(*facts, "EU", "DE", kNow) == Cover::kYes);
  CHECK(Inside(*facts, "EU", "DE-BY", kNow) == Cover::kYes);
  CHECK(Inside(*facts, "EU", "RE", kNow) == Cover::kYes);
  CHECK(Inside(*facts, "EU", "GB", kNow) == Cover::kNo);
  CHECK(Inside(*facts, "EU", "GB", "2020-01-31T23:59:59Z") == Cover::kYes);
  CHECK(Inside(*facts, "EU", "GB", "2020-02-01T00:00:00Z") == Cover::kNo);
  CHECK(Inside(*facts, "EU", "US-DE", kNow) == Cover::kNo);
  CHECK(Inside(*facts, "EEA", "DE", kNow) == Cover::kUnknown);
  CHECK(Inside(*facts, "EU", "DE", "2027-06-30T00:00:00Z") == Cover::kUnknown);
  CHECK(Inside(*facts, "DE", "DE-BY", "2030-01-01T00:00:00Z") == Cover::kYes);
}

TEST_CASE("Facts: the canonical form does not depend on order, file or lines") {
  const auto facts = ParseFacts(kText, "facts.toml");
  const std::size_t second = kText.find("[[fact]]\nid = \"eu-gb\"");
  const std::size_t third = kText.find("[[fact]]\nid = \"ch\"");
  const auto other = ParseFacts("# moved\n" + kText.substr(0, second) + kText.substr(third) +
                                    kText.substr(second, third - second),
                                "other.toml");

  REQUIRE(facts.ok());
  REQUIRE(other.ok());
  CHECK(PrintJson(facts->ToJson()) == PrintJson(other->ToJson()));
}

TEST_CASE("Facts: mistakes are refused at their line") {
  struct Case {
    std::string from;
    std::string to;
    std::string says;
  };
  const Case cases[] = {
      {"kind = \"adequacy\"", "kind = \"adequate\"", "did you mean `adequacy`"},
      {"kind = \"adequacy\"", "kind = \"adequacy\"\nmembers = [\"CH\"]", "unknown key"},
      {"regime = \"eu-gdpr\"", "regime = \"gdpr\"", "eu-gdpr"},
      {"bloc = \"EU\"", "bloc = \"EFTA\"", "known are"},
      {"\"IE\", \"RE\"", "\"UK\", \"RE\"", "`GB`"},
      {"to = [\"CH\"]", "to = []", "must not be empty"},
      {"from = [\"EU\"]\n", "", "`fact[2].from` is missing"},
      {"until_date = 2020-02-01", "until_date = 1973-01-01", "after from_date"},
      {"id = \"eu-gb\"", "id = \"eu\"", "twice"},
      {"source = \"2000/518/EC\"\n", "", "`fact[2].source` is missing"},
      {"expires = 2027-06-30\n", "", "`facts.expires` is missing"},
      {"version = 3", "version = 0", "whole number"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.to);
    const Status status = ParseFacts(Replaced(kText, c.from, c.to), "facts.toml").status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    const std::string message(Message(status));
    CAPTURE(message);
    CHECK(message.starts_with("facts.toml:"));
    CHECK(message.find(c.says) != std::string::npos);
  }
}

TEST_CASE("Facts: thresholds and negative lists are read, and are part of the canonical form") {
  const std::string more = kText + R"(
[[fact]]
id = "cn-many"
kind = "threshold"
regime = "cn-pipl"
categories = ["health", "genomic"]
at_least = 10000
requires = ["cac_assessment"]
from_date = 2024-03-22
source = "CAC"
checked_by = "counsel"
checked_on = 2026-11-30

[[fact]]
id = "none-to-xy"
kind = "negative_list"
regime = "in-dpdp"
from = ["IN"]
to = ["CU", "EU"]
from_date = 2026-01-01
source = "gazette"
checked_by = "counsel"
checked_on = 2026-11-30
)";
  const auto facts = ParseFacts(more, "facts.toml");
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));

  const Fact& threshold = facts->facts[3];
  CHECK(threshold.kind == FactKind::kThreshold);
  CHECK(threshold.regime == Regime::kCnPipl);
  CHECK(threshold.categories == std::set{Category::kHealth, Category::kGenomic});
  CHECK(threshold.at_least == 10'000);
  CHECK(threshold.mechanisms == std::set{Mechanism::kCacAssessment});
  CHECK(threshold.from.empty());
  const Fact& negative = facts->facts[4];
  CHECK(negative.kind == FactKind::kNegativeList);
  CHECK(negative.to.size() == 2);

  const std::string text = PrintJson(facts->ToJson());
  CHECK(text.find(R"("at_least":10000,"categories":["health","genomic"])") != std::string::npos);
  CHECK(text.find(R"("requires":["cac_assessment"])") != std::string::npos);
  CHECK(text.find(R"("kind":"negative_list")") != std::string::npos);
  for (const auto& [from, to] : {std::pair{"at_least = 10000", "at_least = 9999"},
                                 std::pair{"[\"cac_assessment\"]", "[\"cac_contract\"]"},
                                 std::pair{"[\"health\", \"genomic\"]", "[\"health\"]"},
                                 std::pair{"requires = [\"cac_assessment\"]\n", ""},
                                 std::pair{"[\"CU\", \"EU\"]", "[\"CU\"]"}}) {
    CAPTURE(from);
    const auto other = ParseFacts(Replaced(more, from, to), "facts.toml");
    REQUIRE(other.ok());
    CHECK(PrintJson(other->ToJson()) != text);
  }
}

TEST_CASE("Facts: the example's blocs know the territories that codes alone do not tell") {
  const auto text = ReadFile(
      std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/legal-facts.toml", 1U << 20U);
  REQUIRE(text.ok());
  const auto facts = ParseFacts(*text, "facts");
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));
  constexpr std::string_view kNow = "2026-12-01T00:00:00Z";

  for (const std::string_view place : {"RE", "GP", "MQ", "GF", "YT", "MF", "AX", "HU", "IE"}) {
    CAPTURE(place);
    CHECK(Inside(*facts, "EU", place, kNow) == Cover::kYes);
    CHECK(Inside(*facts, "EEA", place, kNow) == Cover::kYes);
  }
  for (const std::string_view place :
       {"GL", "FO", "NC", "PF", "GB", "GG", "JE", "IM", "CH", "US"}) {
    CAPTURE(place);
    CHECK(Inside(*facts, "EU", place, kNow) == Cover::kNo);
    CHECK(Inside(*facts, "EEA", place, kNow) == Cover::kNo);
  }
  CHECK(Inside(*facts, "EEA", "NO", kNow) == Cover::kYes);
  CHECK(Inside(*facts, "EU", "NO", kNow) == Cover::kNo);
}

}  // namespace domicile::policy
