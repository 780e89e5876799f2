#include "policy/language/jurisdiction.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

namespace domicile::policy {
namespace {

Jurisdiction At(std::string_view text) {
  auto place = Jurisdiction::Parse(text);
  REQUIRE(place.ok());
  return *std::move(place);
}

}  // namespace

TEST_CASE("Jurisdiction: the list has the 249 official codes, sorted, and each parses") {
  const auto codes = CountryCodes();

  CHECK(codes.size() == 249);
  CHECK(std::is_sorted(codes.begin(), codes.end()));
  CHECK(std::adjacent_find(codes.begin(), codes.end()) == codes.end());
  for (const std::string_view code : codes) {
    CAPTURE(code);
    CHECK(Jurisdiction::Parse(code).ok());
  }
}

TEST_CASE("Jurisdiction: of all two-letter texts exactly the official codes are accepted") {
  int accepted = 0;
  for (char a = 'A'; a <= 'Z'; ++a) {
    for (char b = 'A'; b <= 'Z'; ++b) {
      accepted += Jurisdiction::Parse(std::string{a, b}).ok() ? 1 : 0;
    }
  }
  CHECK(accepted == 249);
}

TEST_CASE("Jurisdiction: traps are refused with a hint") {
  struct Case {
    std::string_view text;
    std::string_view hint;
  };
  const Case cases[] = {
      {"UK", "`GB`"},
      {"EL", "`GR`"},
      {"XK", "user-assigned"},
      {"EU", "is a bloc"},
      {"EEA", "is a bloc"},
      {"DEU", "`DE`"},
      {"AUT", "`AT`"},
      {"ABC", "three-letter"},
      {"Germany", "`DE`"},
      {"switzerland", "`CH`"},
      {"South Afrika", "`ZA`"},
      {"T\u00fcrkiye", "`TR`"},
      {"TP", "`TL`"},
      {"DD", "`DE`"},
      {"IC", "in `ES`"},
      {"US-PR", "`PR`"},
      {"CN-HK", "`HK`"},
      {"FR-974", "`RE`"},
      {"FI-01", "`AX`"},
      {"DE-US", "`US-DE`"},
      {"CA-QCC", "did you mean `CA-QC`"},
      {"CA-QB", "`CA` has no such subdivision"},
      {"US-XY", "did you mean `US-KY`, `US-NY` or `US-WY`?"},
      {"CH-XX", "has no such subdivision in ISO 3166-2"},
      {"US-DE ", "white space"},
      {"UK-ENG", "`GB`"},
      {"de", "`DE`"},
      {"us-oh", "`US-OH`"},
      {"De", "`DE`"},
      {"no", "`NO`"},
      {" DE", "white space"},
      {"DE ", "white space"},
      {"DE\n", "white space"},
      {"D\u0415", "look-alikes"},
      {"\u0405\u0415", "look-alikes"},
      {"\uFF24\uFF25", "look-alikes"},
      {"*", "wildcard"},
      {"DE*", "wildcard"},
      {"DE,US", "not a list"},
      {"DE;US", "not a list"},
      {"DE|US", "not a list"},
      {"", "unset"},
      {"XX", "ISO 3166-1"},
      {"DE-", "`DE` has no such subdivision"},
      {"DE-BAYE", "`DE` has no such subdivision"},
      {"XX-BY", "ISO 3166-1"},
      {"DE-B-Y", "did you mean `DE-BY`"},
      {"-DE", "ISO 3166-1"},
      {"DE-by", "`DE-BY`"},
      {"EUROPE", "continent"},
      {"276", "ISO 3166-1"},
      {std::string_view("DE\0", 3), "ISO 3166-1"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto place = Jurisdiction::Parse(c.text);
    CHECK(!place.ok());
    CHECK(place.status().code() == StatusCode::kInvalidArgument);
    CHECK(Message(place.status()).find(c.hint) != std::string_view::npos);
  }
}

TEST_CASE("Jurisdiction: codes that other systems lose are ordinary places") {
  for (const std::string_view code :
       {"NA", "NO", "GG", "JE", "IM", "AX", "RE", "GL", "TW", "HK", "PR", "CA-QC", "US-OH",
        "GB-ENG", "AE-DU", "CH-ZH", "FR-75C", "RU-MOW", "BR-SP"}) {
    CAPTURE(code);
    CHECK(Jurisdiction::Parse(code).ok());
  }
}

TEST_CASE("Jurisdiction: a country covers its subdivisions by the part before the hyphen") {
  CHECK(At("US").Covers(At("US-DE")));
  CHECK(At("DE").Covers(At("DE-BY")));
  CHECK(At("DE").Covers(At("DE")));
  CHECK(!At("DE").Covers(At("US-DE")));
  CHECK(!At("DE-BY").Covers(At("DE")));
  CHECK(!At("DE-BY").Covers(At("DE-BE")));
  CHECK(!At("US").Covers(At("UM")));
  CHECK(!Jurisdiction().Covers(Jurisdiction()));
  CHECK(!Jurisdiction().Covers(At("DE")));
  CHECK(!At("DE").Covers(Jurisdiction()));
}

TEST_CASE("Area: blocs and places are told apart, and blocs that nobody defined are refused") {
  CHECK(Area::Parse("EU")->IsBloc());
  CHECK(Area::Parse("EEA")->IsBloc());
  CHECK(!Area::Parse("DE")->IsBloc());
  CHECK(Area::Parse("DE")->Place() == At("DE"));
  CHECK(Area::Parse("US-OH")->text() == "US-OH");
  for (const std::string_view text : {"EFTA", "eu", "EU ", "EUROPE", "", "*", "UK"}) {
    CAPTURE(text);
    CHECK(!Area::Parse(text).ok());
  }
}

}  // namespace domicile::policy
