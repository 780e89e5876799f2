// The finite space of requests about one dataset of one site, in classes: values that no rule,
// bloc or fact of the worlds asked about tells apart share a class, and one of them stands for all.
//
// Exact, not a sample: Decide reads a place only through the areas that policies and facts name,
// and through whether two places are of one country. Tests compare with every place, one by one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "policy/analysis/crossing.h"
#include "policy/analysis/world.h"

namespace domicile::policy::analysis::internal {

// In the order in which a search fixes them. `hub` is the aggregator: the receiver of a
// contribution, or who holds what somebody else (`to`) gets.
enum class Dim : std::uint8_t {
  kDate = 0,
  kHubPlace = 1,
  kHubControl = 2,
  kHubOrganisation = 3,
  kWho = 4,
  kToPlace = 5,
  kToControl = 6,
  kToOrganisation = 7,
  kView = 8,
  kPurpose = 9,
  kKind = 10,
};
inline constexpr std::size_t kNumDims = 11;

// One request, as the index of its value in each dimension.
struct Key {
  std::array<std::uint16_t, kNumDims> at = {};
  std::uint16_t& operator[](Dim dim) { return at[static_cast<std::size_t>(dim)]; }
  std::uint16_t operator[](Dim dim) const { return at[static_cast<std::size_t>(dim)]; }
  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const;
};

struct PlaceClass {
  std::vector<Jurisdiction> members;
  Jurisdiction first;
  std::optional<Jurisdiction> elsewhere;  // a member in another country than `first`
};

// A value of kToPlace. Whether the receiver is in the hub's own country matters only where both are
// of one class that has several countries.
enum class Relation : std::uint8_t { kAny = 0, kHubsCountry = 1, kAnotherCountry = 2 };
struct ToPlace {
  std::size_t place_class = 0;
  Relation relation = Relation::kAny;
};

struct Who {
  PartyRole role = PartyRole::kNone;
  std::string id;
  std::string label;
};

struct PurposeClass {
  Purpose first = Purpose::kNone;
  std::vector<Purpose> members;
};

// Immutable once made.
class Space {
 public:
  // About `site` and `dataset` as both worlds have them (the same world twice, for one). `named`
  // are places that a question names: each is told apart from all others.
  static Space About(std::span<const World* const> worlds, const std::string& site,
                     const DatasetAlias& dataset, const Window& window,
                     const std::set<Area>& named);

  // How many values a dimension has at a decision point; 1 where it plays no part.
  std::size_t Size(DecisionPoint point, Dim dim) const;
  // Whether the values fixed so far go together.
  bool Fits(DecisionPoint point, const Key& key, Dim just_fixed) const;
  // Sets what the dimension says in the request.
  void Apply(DecisionPoint point, Dim dim, const Key& key, Transfer& transfer) const;
  // How many requests of the full space a key stands for.
  std::uint64_t Weight(DecisionPoint point, const Key& key) const;
  // The size of the full space at a point.
  std::uint64_t FullSize(DecisionPoint point) const;
  Covered Cover(std::span<const DecisionPoint> points) const;

  const std::vector<PlaceClass>& places() const { return places_; }
  const std::vector<PlaceClass>& control() const { return control_; }
  const std::vector<ToPlace>& to_places() const { return to_places_; }
  const std::vector<std::string>& organisations() const { return organisations_; }
  const std::vector<Who>& who() const { return who_; }
  std::vector<Who> WhoAt(DecisionPoint point) const;
  const std::vector<PurposeClass>& purposes() const { return purposes_; }
  const std::vector<Period>& dates() const { return dates_; }

 private:
  std::vector<PlaceClass> places_;
  std::vector<PlaceClass> control_;
  std::vector<ToPlace> to_places_;
  std::vector<std::string> organisations_;  // the last stands for all that no rule names
  std::vector<Who> who_;
  std::vector<PurposeClass> purposes_;
  std::vector<Period> dates_;
};

// The points that an analysis asks about. `enrolment`, `offer` and `data_open` ask the same of the
// same parties before anything is computed.
std::span<const DecisionPoint> AllPoints();
bool HasVia(DecisionPoint point);
// Whether two parties get something: of an offer, the aggregator and one recipient of models.
bool HasSecond(DecisionPoint point);

// The organisation of the site itself, whose name no policy has.
inline constexpr std::string_view kOwnOrganisation = "the site's own organisation";

// A request at the most permissive numbers a real one can have: one round, one run, endless records
// behind every number, every approval; no number denies it that would not deny all.
Transfer PermissiveTransfer(const Policy& site, const DatasetAlias& dataset, const Terms* terms);

}  // namespace domicile::policy::analysis::internal
