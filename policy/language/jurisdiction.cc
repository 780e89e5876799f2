#include "policy/language/jurisdiction.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "policy/language/iso_3166.h"

namespace domicile::policy {
namespace {

constexpr std::array<std::string_view, 2> kBlocs = {"EEA", "EU"};

struct Hint {
  std::string_view wrong;
  std::string_view hint;
};
// What people write instead, and what they should. Of codes that ISO 3166-1 reserves, assigns to
// users or has withdrawn.
constexpr std::array kHints = {
    Hint{"UK", "the code of the United Kingdom is `GB`"},
    Hint{"EL", "the code of Greece is `GR`"},
    Hint{"XK", "`XK` is user-assigned, not in ISO 3166-1; Kosovo has no official code there"},
    Hint{"EU", "`EU` is a bloc, not a place; blocs stand only in rules and legal facts"},
    Hint{"EEA", "`EEA` is a bloc, not a place; blocs stand only in rules and legal facts"},
    Hint{"EFTA", "this bloc is not defined; list its countries"},
    Hint{"APEC", "this bloc is not defined; list its countries"},
    Hint{"EZ", "the euro area is not a place; list its countries"},
    Hint{"UN", "an organisation is not a place; write where it keeps the data"},
    Hint{"EUROPE", "a continent is not a place; write `EU`, `EEA` or list countries"},
    Hint{"AFRICA", "a continent is not a place; list countries"},
    Hint{"ASIA", "a continent is not a place; list countries"},
    Hint{"AC", "the code of Ascension is `SH`"},
    Hint{"TA", "the code of Tristan da Cunha is `SH`"},
    Hint{"EA", "Ceuta and Melilla are in `ES`"},
    Hint{"IC", "the Canary Islands are in `ES`"},
    Hint{"FX", "the code of France is `FR`"},
    Hint{"AN", "the Netherlands Antilles are dissolved; write `BQ`, `CW` or `SX`"},
    Hint{"BU", "the code of Myanmar is `MM`"},
    Hint{"CS", "this code is withdrawn; write `CZ`, `SK`, `RS` or `ME`"},
    Hint{"DD", "the code of Germany is `DE`"},
    Hint{"SU", "the Soviet Union is dissolved; write the country of today"},
    Hint{"TP", "the code of Timor-Leste is `TL`"},
    Hint{"YU", "Yugoslavia is dissolved; write the country of today"},
    Hint{"ZR", "the code of the Democratic Republic of the Congo is `CD`"},
    Hint{"JA", "the code of Japan is `JP`"},
    Hint{"EN", "this is a language; write the country, such as `GB`"},
    Hint{"*", "there is no wildcard; list the places"},
};

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return upper;
}

bool IsCountry(std::string_view text) {
  const auto countries = IsoCountries();
  const auto found = std::lower_bound(
      countries.begin(), countries.end(), text,
      [](const IsoCountry& each, std::string_view code) { return each.alpha2 < code; });
  return found != countries.end() && found->alpha2 == text;
}

bool HasSubdivisionForm(std::string_view text) {
  return text.size() >= 4 && text.size() <= 6 && text[2] == '-' && IsCountry(text.substr(0, 2)) &&
         std::all_of(text.begin() + 3, text.end(), [](char c) { return IsUpper(c) || IsDigit(c); });
}

// The parts of a country's subdivisions; null where they are checked by form only.
const IsoSubdivisions* Listed(std::string_view country) {
  const auto lists = IsoListedSubdivisions();
  const auto found =
      std::find_if(lists.begin(), lists.end(),
                   [country](const IsoSubdivisions& each) { return each.country == country; });
  return found == lists.end() ? nullptr : &*found;
}

// The code that the place has as a country; empty for every other text.
std::string_view OwnCode(std::string_view subdivision) {
  const auto codes = IsoOwnCodes();
  const auto found = std::find_if(
      codes.begin(), codes.end(),
      [subdivision](const IsoOwnCode& each) { return each.subdivision == subdivision; });
  return found == codes.end() ? std::string_view{} : found->country;
}

bool IsPlace(std::string_view text) {
  if (text.size() == 2) {
    return IsCountry(text);
  }
  if (!HasSubdivisionForm(text) || !OwnCode(text).empty()) {
    return false;
  }
  const IsoSubdivisions* list = Listed(text.substr(0, 2));
  return list == nullptr ||
         list->parts.find(" " + std::string(text.substr(3)) + " ") != std::string_view::npos;
}

// The code of a country by its name in English or its alpha-3 code, in letters of any case; empty
// if nothing is near.
std::string_view CodeByName(const std::string& upper) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const IsoCountry& country : IsoCountries()) {
      all.push_back(Upper(country.name));
    }
    return all;
  }();
  for (const IsoCountry& country : IsoCountries()) {
    if (country.alpha3 == upper) {
      return country.alpha2;
    }
  }
  constexpr std::size_t kShortestName = 5;  // shorter texts are near to everything
  const std::string nearest =
      upper.size() < kShortestName ? "" : NearestSpelling(upper, std::span(names));
  const auto found = std::find(names.begin(), names.end(), nearest.empty() ? upper : nearest);
  return found == names.end()
             ? std::string_view{}
             : IsoCountries()[static_cast<std::size_t>(found - names.begin())].alpha2;
}

// What is wrong with a text of the form of a subdivision, or of two places the wrong way round.
std::string SubdivisionHint(std::string_view text) {
  if (const std::string_view own = OwnCode(text); !own.empty()) {
    return "this place has a code of its own, which is the one to write: `" + std::string(own) +
           "`";
  }
  const std::size_t hyphen = text.find('-');
  if (hyphen != 2 || !IsCountry(text.substr(0, 2))) {
    return {};
  }
  const std::string country(text.substr(0, 2));
  const IsoSubdivisions* list = Listed(country);
  if (list == nullptr) {
    return {};
  }
  const std::string swapped = std::string(text.substr(3)) + "-" + country;
  if (IsPlace(swapped)) {
    return "the country stands first: is `" + swapped + "` meant?";
  }
  std::vector<std::string> codes;
  for (const std::string_view part : Split(list->parts, ' ')) {
    if (!part.empty()) {
      codes.push_back(country + "-" + std::string(part));
    }
  }
  const std::vector<std::string_view> known(codes.begin(), codes.end());
  return "`" + country + "` has no such subdivision in ISO 3166-2" + DidYouMean(text, known);
}

Status NotAPlace(std::string_view text, std::string_view kind) {
  return Error(StatusCode::kInvalidArgument, "`" + Visible(text, 24) + "` is not a " +
                                                 std::string(kind) + ": " + JurisdictionHint(text));
}

}  // namespace

std::string JurisdictionHint(std::string_view text) {
  if (text.empty()) {
    return "it is empty; an unset place never means a default";
  }
  // Also of the part before the hyphen: `UK-ENG`.
  const std::string_view country = text.size() > 3 && text[2] == '-' ? text.substr(0, 2) : text;
  for (const Hint& hint : kHints) {
    if (country == hint.wrong) {
      return std::string(hint.hint);
    }
  }
  const std::string upper = Upper(text);
  if (upper != text && (IsPlace(upper) || upper == "EU" || upper == "EEA")) {
    return "codes are upper case: `" + upper + "`";
  }
  if (const std::string_view code = CodeByName(upper); !code.empty()) {
    return "use the two-letter code `" + std::string(code) + "`";
  }
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    return "it has letters that are not ASCII, such as look-alikes of Latin letters";
  }
  if (text.find_first_of(" \t\r\n") != std::string_view::npos) {
    return "it has white space, which is not trimmed";
  }
  if (text.find_first_of(",;|/") != std::string_view::npos) {
    return "it holds one place, not a list";
  }
  if (text.find('*') != std::string_view::npos) {
    return "there is no wildcard; list the places";
  }
  if (std::string hint = SubdivisionHint(text); !hint.empty()) {
    return hint;
  }
  if (text.size() == 3 && std::all_of(text.begin(), text.end(), IsUpper)) {
    return "three-letter codes are not used; write the two-letter code";
  }
  return "use ISO 3166-1 alpha-2 (`DE`) or ISO 3166-2 (`US-OH`)";
}

std::string DidYouMean(std::string_view text, std::span<const std::string_view> known) {
  constexpr std::size_t kMost = 3;
  const std::vector<std::string> nearest = NearestSpellings(text, known);
  if (nearest.empty() || nearest.size() > kMost) {
    return {};
  }
  std::string guess = " (did you mean ";
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    guess += (i == 0 ? "`" : i + 1 == nearest.size() ? " or `" : ", `") + nearest[i] + "`";
  }
  return guess + "?)";
}

StatusOr<Jurisdiction> Jurisdiction::Parse(std::string_view text) {
  if (!IsPlace(text)) {
    return NotAPlace(text, "jurisdiction");
  }
  return Jurisdiction(std::string(text));
}

bool Jurisdiction::Covers(const Jurisdiction& inner) const {
  if (IsNone() || inner.IsNone()) {
    return false;
  }
  return *this == inner || (!IsSubdivision() && text_ == inner.Country());
}

StatusOr<Area> Area::Parse(std::string_view text) {
  Area area;
  area.text_ = text;
  if (std::find(kBlocs.begin(), kBlocs.end(), text) != kBlocs.end()) {
    area.is_bloc_ = true;
    return area;
  }
  StatusOr<Jurisdiction> place = Jurisdiction::Parse(text);
  if (!place.ok()) {
    return NotAPlace(text, "jurisdiction or bloc");
  }
  area.place_ = *std::move(place);
  return area;
}

Area Area::Of(const Jurisdiction& place) {
  Area area;
  area.text_ = place.text();
  area.place_ = place;
  return area;
}

std::span<const std::string_view> BlocNames() { return kBlocs; }

std::span<const std::string_view> CountryCodes() {
  static const std::vector<std::string_view> codes = [] {
    std::vector<std::string_view> all;
    for (const IsoCountry& country : IsoCountries()) {
      all.push_back(country.alpha2);
    }
    return all;
  }();
  return codes;
}

}  // namespace domicile::policy
