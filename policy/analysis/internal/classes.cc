#include "policy/analysis/internal/classes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace domicile::policy::analysis::internal {
namespace {

std::vector<Jurisdiction> AllPlaces(const Distinctions& distinctions) {
  std::set<Jurisdiction> places;
  for (const std::string_view code : CountryCodes()) {
    places.insert(*Jurisdiction::Parse(code));
  }
  for (const std::set<Area>& areas : distinctions.areas) {
    for (const Area& area : areas) {
      if (!area.IsBloc()) {
        places.insert(area.Place());
      }
    }
  }
  for (const std::set<Jurisdiction>& members : distinctions.members) {
    places.insert(members.begin(), members.end());
  }
  return {places.begin(), places.end()};
}

// One letter for each question that Decide can ask about a place.
class Signature {
 public:
  void Add(bool answer) { text_.push_back(answer ? 'y' : 'n'); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string SignatureOf(const Jurisdiction& place, const Distinctions& distinctions,
                        const std::set<std::string>& countries) {
  Signature signature;
  for (const std::set<Area>& areas : distinctions.areas) {
    signature.Add(std::any_of(areas.begin(), areas.end(), [&place](const Area& area) {
      return !area.IsBloc() && area.Place().Covers(place);
    }));
    signature.Add(std::any_of(areas.begin(), areas.end(), [&place](const Area& area) {
      return !area.IsBloc() && place.Covers(area.Place());
    }));
  }
  for (const std::set<Jurisdiction>& members : distinctions.members) {
    signature.Add(std::any_of(members.begin(), members.end(), [&place](const Jurisdiction& member) {
      return member.Covers(place);
    }));
  }
  for (const std::string& country : countries) {
    signature.Add(place.Country() == country);
  }
  return signature.Take();
}

}  // namespace

void AddBlocs(const Facts& facts, Distinctions& distinctions) {
  std::set<std::string> named;
  for (const std::set<Area>& areas : distinctions.areas) {
    for (const Area& area : areas) {
      if (area.IsBloc()) {
        named.insert(area.text());
      }
    }
  }
  for (const Fact& fact : facts.facts) {
    if (fact.kind == FactKind::kBloc && named.contains(fact.bloc)) {
      distinctions.members.insert(fact.members);
    }
  }
}

std::vector<PlaceClass> SplitPlaces(const Distinctions& distinctions) {
  const std::vector<Jurisdiction> places = AllPlaces(distinctions);
  // A subdivision and its country share a border with none; told apart from all other countries,
  // a class of several countries holds nothing but countries, and any two of it are alike.
  std::set<std::string> countries = distinctions.countries;
  for (const Jurisdiction& place : places) {
    if (place.IsSubdivision()) {
      countries.insert(std::string(place.Country()));
    }
  }
  std::vector<PlaceClass> classes;
  std::map<std::string, std::size_t> found;
  for (const Jurisdiction& place : places) {
    const auto [at, is_new] =
        found.emplace(SignatureOf(place, distinctions, countries), classes.size());
    if (is_new) {
      classes.push_back({{place}, place, std::nullopt});
      continue;
    }
    PlaceClass& same = classes[at->second];
    same.members.push_back(place);
    if (!same.elsewhere && place.Country() != same.first.Country()) {
      same.elsewhere = place;
    }
  }
  return classes;
}

}  // namespace domicile::policy::analysis::internal
