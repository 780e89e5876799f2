// The lists of ISO 3166 that the language knows, as data. Meaning and hints: jurisdiction.h.
#pragma once

#include <span>
#include <string_view>

namespace domicile::policy {

struct IsoCountry {
  std::string_view alpha2;
  std::string_view alpha3;
  std::string_view name;  // in English; for hints only
};

// The subdivisions of a country whose law asks for them.
struct IsoSubdivisions {
  std::string_view country;
  std::string_view parts;  // the parts after the hyphen, each between spaces: ` BW BY `
};

// A subdivision that ISO 3166-1 also lists as a country: `US-PR` is `PR`.
struct IsoOwnCode {
  std::string_view subdivision;
  std::string_view country;
};

// All 249, sorted by alpha2.
std::span<const IsoCountry> IsoCountries();
// Without those of IsoOwnCodes. Subdivisions of countries not in this list are checked by form.
std::span<const IsoSubdivisions> IsoListedSubdivisions();
std::span<const IsoOwnCode> IsoOwnCodes();

}  // namespace domicile::policy
