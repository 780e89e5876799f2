#include "policy/language/jurisdiction.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace domicile::policy {
namespace {

using std::string_view_literals::operator""sv;

// ISO 3166-1, officially assigned. `XK`, `EU`, `UK` and other reserved or user-assigned elements
// are not in it, by design.
constexpr std::array kCountries = {
    "AD"sv, "AE"sv, "AF"sv, "AG"sv, "AI"sv, "AL"sv, "AM"sv, "AO"sv, "AQ"sv, "AR"sv, "AS"sv, "AT"sv,
    "AU"sv, "AW"sv, "AX"sv, "AZ"sv, "BA"sv, "BB"sv, "BD"sv, "BE"sv, "BF"sv, "BG"sv, "BH"sv, "BI"sv,
    "BJ"sv, "BL"sv, "BM"sv, "BN"sv, "BO"sv, "BQ"sv, "BR"sv, "BS"sv, "BT"sv, "BV"sv, "BW"sv, "BY"sv,
    "BZ"sv, "CA"sv, "CC"sv, "CD"sv, "CF"sv, "CG"sv, "CH"sv, "CI"sv, "CK"sv, "CL"sv, "CM"sv, "CN"sv,
    "CO"sv, "CR"sv, "CU"sv, "CV"sv, "CW"sv, "CX"sv, "CY"sv, "CZ"sv, "DE"sv, "DJ"sv, "DK"sv, "DM"sv,
    "DO"sv, "DZ"sv, "EC"sv, "EE"sv, "EG"sv, "EH"sv, "ER"sv, "ES"sv, "ET"sv, "FI"sv, "FJ"sv, "FK"sv,
    "FM"sv, "FO"sv, "FR"sv, "GA"sv, "GB"sv, "GD"sv, "GE"sv, "GF"sv, "GG"sv, "GH"sv, "GI"sv, "GL"sv,
    "GM"sv, "GN"sv, "GP"sv, "GQ"sv, "GR"sv, "GS"sv, "GT"sv, "GU"sv, "GW"sv, "GY"sv, "HK"sv, "HM"sv,
    "HN"sv, "HR"sv, "HT"sv, "HU"sv, "ID"sv, "IE"sv, "IL"sv, "IM"sv, "IN"sv, "IO"sv, "IQ"sv, "IR"sv,
    "IS"sv, "IT"sv, "JE"sv, "JM"sv, "JO"sv, "JP"sv, "KE"sv, "KG"sv, "KH"sv, "KI"sv, "KM"sv, "KN"sv,
    "KP"sv, "KR"sv, "KW"sv, "KY"sv, "KZ"sv, "LA"sv, "LB"sv, "LC"sv, "LI"sv, "LK"sv, "LR"sv, "LS"sv,
    "LT"sv, "LU"sv, "LV"sv, "LY"sv, "MA"sv, "MC"sv, "MD"sv, "ME"sv, "MF"sv, "MG"sv, "MH"sv, "MK"sv,
    "ML"sv, "MM"sv, "MN"sv, "MO"sv, "MP"sv, "MQ"sv, "MR"sv, "MS"sv, "MT"sv, "MU"sv, "MV"sv, "MW"sv,
    "MX"sv, "MY"sv, "MZ"sv, "NA"sv, "NC"sv, "NE"sv, "NF"sv, "NG"sv, "NI"sv, "NL"sv, "NO"sv, "NP"sv,
    "NR"sv, "NU"sv, "NZ"sv, "OM"sv, "PA"sv, "PE"sv, "PF"sv, "PG"sv, "PH"sv, "PK"sv, "PL"sv, "PM"sv,
    "PN"sv, "PR"sv, "PS"sv, "PT"sv, "PW"sv, "PY"sv, "QA"sv, "RE"sv, "RO"sv, "RS"sv, "RU"sv, "RW"sv,
    "SA"sv, "SB"sv, "SC"sv, "SD"sv, "SE"sv, "SG"sv, "SH"sv, "SI"sv, "SJ"sv, "SK"sv, "SL"sv, "SM"sv,
    "SN"sv, "SO"sv, "SR"sv, "SS"sv, "ST"sv, "SV"sv, "SX"sv, "SY"sv, "SZ"sv, "TC"sv, "TD"sv, "TF"sv,
    "TG"sv, "TH"sv, "TJ"sv, "TK"sv, "TL"sv, "TM"sv, "TN"sv, "TO"sv, "TR"sv, "TT"sv, "TV"sv, "TW"sv,
    "TZ"sv, "UA"sv, "UG"sv, "UM"sv, "US"sv, "UY"sv, "UZ"sv, "VA"sv, "VC"sv, "VE"sv, "VG"sv, "VI"sv,
    "VN"sv, "VU"sv, "WF"sv, "WS"sv, "YE"sv, "YT"sv, "ZA"sv, "ZM"sv, "ZW"sv};
static_assert(kCountries.size() == 249);

constexpr std::array kBlocs = {"EEA"sv, "EU"sv};

struct Hint {
  std::string_view wrong;
  std::string_view hint;
};
// What people write instead, and what they should.
constexpr std::array kHints = {
    Hint{"UK", "the code of the United Kingdom is `GB`"},
    Hint{"EL", "the code of Greece is `GR`"},
    Hint{"XK", "`XK` is user-assigned, not in ISO 3166-1; Kosovo has no official code there"},
    Hint{"EU", "`EU` is a bloc, not a place; blocs stand only in rules and legal facts"},
    Hint{"EEA", "`EEA` is a bloc, not a place; blocs stand only in rules and legal facts"},
    Hint{"EFTA", "this bloc is not defined; list its countries"},
    Hint{"EUROPE", "a continent is not a place; write `EU`, `EEA` or list countries"},
    Hint{"FRA", "use the two-letter code `FR`"},
    Hint{"DEU", "use the two-letter code `DE`"},
    Hint{"GBR", "use the two-letter code `GB`"},
    Hint{"USA", "use the two-letter code `US`"},
    Hint{"CHE", "use the two-letter code `CH`"},
    Hint{"IRL", "use the two-letter code `IE`"},
    Hint{"HUN", "use the two-letter code `HU`"},
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
  return std::binary_search(kCountries.begin(), kCountries.end(), text);
}

bool IsPlace(std::string_view text) {
  if (text.size() == 2) {
    return IsCountry(text);
  }
  return text.size() >= 4 && text.size() <= 6 && text[2] == '-' && IsCountry(text.substr(0, 2)) &&
         std::all_of(text.begin() + 3, text.end(), [](char c) { return IsUpper(c) || IsDigit(c); });
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
  for (const Hint& hint : kHints) {
    if (text == hint.wrong) {
      return std::string(hint.hint);
    }
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
  const std::string upper = Upper(text);
  if (upper != text && (IsPlace(upper) || upper == "EU" || upper == "EEA")) {
    return "codes are upper case: `" + upper + "`";
  }
  if (text.size() == 3 && std::all_of(text.begin(), text.end(), IsUpper)) {
    return "three-letter codes are not used; write the two-letter code";
  }
  return "use ISO 3166-1 alpha-2 (`DE`) or ISO 3166-2 (`US-OH`)";
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
std::span<const std::string_view> CountryCodes() { return kCountries; }

}  // namespace domicile::policy
