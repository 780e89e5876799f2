#include "policy/analysis/internal/boxes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace domicile::policy::analysis::internal {
namespace {

using Values = std::set<std::uint16_t>;
using Box = std::array<Values, kNumDims>;

// The receiver's place first: only then can "the hub's country" and "another" become "any".
constexpr std::array<Dim, kNumDims> kMergeOrder = {
    Dim::kToPlace,  Dim::kKind,           Dim::kView,           Dim::kPurpose,
    Dim::kDate,     Dim::kToOrganisation, Dim::kToControl,      Dim::kWho,
    Dim::kHubPlace, Dim::kHubControl,     Dim::kHubOrganisation};

// Joins boxes that differ in one dimension only.
std::vector<Box> MergeAlong(std::vector<Box> boxes, Dim dim) {
  const auto at = static_cast<std::size_t>(dim);
  std::map<Box, Values> joined;
  for (Box& box : boxes) {
    const Values values = std::exchange(box[at], {});
    joined[std::move(box)].insert(values.begin(), values.end());
  }
  std::vector<Box> merged;
  merged.reserve(joined.size());
  for (auto& [rest, values] : joined) {
    Box box = rest;
    box[at] = std::move(values);
    merged.push_back(std::move(box));
  }
  return merged;
}

// Both the hub's own country and every other one of a class: that is the whole class.
void JoinRelations(Box& box, const Space& space) {
  Values& values = box[static_cast<std::size_t>(Dim::kToPlace)];
  const std::vector<ToPlace>& all = space.to_places();
  for (std::uint16_t i = 0; i + std::size_t{2} < all.size(); ++i) {
    const bool has_both = all[i].relation == Relation::kAny &&
                          all[i + 1U].relation == Relation::kHubsCountry &&
                          values.contains(static_cast<std::uint16_t>(i + 1)) &&
                          values.contains(static_cast<std::uint16_t>(i + 2));
    if (has_both) {
      values.erase(static_cast<std::uint16_t>(i + 1));
      values.erase(static_cast<std::uint16_t>(i + 2));
      values.insert(i);
    }
  }
}

std::vector<Box> MergeAll(std::span<const Key> keys, const Space& space) {
  std::vector<Box> boxes;
  boxes.reserve(keys.size());
  for (const Key& key : keys) {
    Box box;
    for (std::size_t i = 0; i < kNumDims; ++i) {
      box[i] = {key.at[i]};
    }
    boxes.push_back(std::move(box));
  }
  std::size_t before = boxes.size() + 1;
  while (boxes.size() < before) {
    before = boxes.size();
    for (const Dim dim : kMergeOrder) {
      boxes = MergeAlong(std::move(boxes), dim);
      if (dim == Dim::kToPlace) {
        for (Box& box : boxes) {
          JoinRelations(box, space);
        }
      }
    }
  }
  return boxes;
}

std::vector<Jurisdiction> MembersOf(const Values& values, const std::vector<PlaceClass>& classes) {
  std::vector<Jurisdiction> members;
  for (const std::uint16_t value : values) {
    const auto& more = classes[value].members;
    members.insert(members.end(), more.begin(), more.end());
  }
  std::sort(members.begin(), members.end());
  return members;
}

std::size_t CountMembers(const std::vector<PlaceClass>& classes) {
  std::size_t count = 0;
  for (const PlaceClass& each : classes) {
    count += each.members.size();
  }
  return count;
}

// Translates one box; holds what the lists need.
class Writer {
 public:
  Writer(const Box& box, DecisionPoint point, const Space& space, const Facts& facts)
      : box_(box),
        point_(point),
        space_(space),
        facts_(facts),
        start_(space.dates()[*box[static_cast<std::size_t>(Dim::kDate)].begin()].from) {}

  Parties Hub() const {
    return {{"aggregator"},
            Organisations(Dim::kHubOrganisation),
            Places(MembersOf(At(Dim::kHubPlace), space_.places()), space_.places()),
            Places(MembersOf(At(Dim::kHubControl), space_.control()), space_.control())};
  }

  Parties Receiver() const {
    Parties to;
    const std::vector<Who> who = space_.WhoAt(point_);
    for (const std::uint16_t value : At(Dim::kWho)) {
      to.who.push_back(who[value].label);
    }
    to.organisations = Organisations(Dim::kToOrganisation);
    Values whole;
    std::vector<std::string> partly;
    for (const std::uint16_t value : At(Dim::kToPlace)) {
      const ToPlace& place = space_.to_places()[value];
      if (place.relation == Relation::kAny) {
        whole.insert(static_cast<std::uint16_t>(place.place_class));
        continue;
      }
      const std::vector<std::string> names =
          Places(space_.places()[place.place_class].members, space_.places());
      partly.push_back((place.relation == Relation::kHubsCountry
                            ? "the aggregator's own country, of "
                            : "another country than the aggregator's, of ") +
                       Join(names));
    }
    to.places = Places(MembersOf(whole, space_.places()), space_.places());
    to.places.insert(to.places.end(), partly.begin(), partly.end());
    to.control = Places(MembersOf(At(Dim::kToControl), space_.control()), space_.control());
    return to;
  }

  std::vector<Period> Periods() const {
    std::vector<Period> periods;
    for (const std::uint16_t value : At(Dim::kDate)) {
      const Period& period = space_.dates()[value];
      if (!periods.empty() && periods.back().until == period.from) {
        periods.back().until = period.until;
      } else {
        periods.push_back(period);
      }
    }
    return periods;
  }

  const Values& At(Dim dim) const { return box_[static_cast<std::size_t>(dim)]; }

 private:
  static std::string Join(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
      text += (text.empty() ? "" : " ") + name;
    }
    return text;
  }

  std::vector<std::string> Places(const std::vector<Jurisdiction>& members,
                                  const std::vector<PlaceClass>& classes) const {
    return NamePlaces(members, CountMembers(classes), facts_, start_);
  }

  std::vector<std::string> Organisations(Dim dim) const {
    const std::vector<std::string>& all = space_.organisations();
    if (At(dim).size() >= space_.Size(point_, dim)) {
      return {};
    }
    std::vector<std::string> names;
    for (const std::uint16_t value : At(dim)) {
      names.push_back(value + 1U == all.size() ? "any other" : all[value]);
    }
    return names;
  }

  const Box& box_;
  DecisionPoint point_;
  const Space& space_;
  const Facts& facts_;
  WallTime start_;
};

std::uint64_t WeightOf(const Box& box, DecisionPoint point, const Space& space) {
  // The relation of two places makes this no plain product.
  Key key;
  std::uint64_t places = 0;
  for (const std::uint16_t hub : box[static_cast<std::size_t>(Dim::kHubPlace)]) {
    for (const std::uint16_t to : box[static_cast<std::size_t>(Dim::kToPlace)]) {
      key[Dim::kHubPlace] = hub;
      key[Dim::kToPlace] = to;
      const std::uint64_t hubs = space.places()[hub].members.size();
      if (!HasVia(point)) {
        places += hubs;
        continue;
      }
      const ToPlace& place = space.to_places()[to];
      const std::uint64_t members = space.places()[place.place_class].members.size();
      places += hubs * (place.relation == Relation::kAny           ? members
                        : place.relation == Relation::kHubsCountry ? 1
                                                                   : members - 1);
    }
  }
  std::uint64_t weight = places;
  for (const Dim dim : {Dim::kDate, Dim::kHubOrganisation, Dim::kWho, Dim::kToOrganisation,
                        Dim::kView, Dim::kKind}) {
    weight *= box[static_cast<std::size_t>(dim)].size();
  }
  weight *= MembersOf(box[static_cast<std::size_t>(Dim::kHubControl)], space.control()).size();
  if (HasVia(point)) {
    weight *= MembersOf(box[static_cast<std::size_t>(Dim::kToControl)], space.control()).size();
  }
  std::uint64_t purposes = 0;
  for (const std::uint16_t value : box[static_cast<std::size_t>(Dim::kPurpose)]) {
    purposes += space.purposes()[value].members.size();
  }
  return weight * purposes;
}

Crossing ToCrossing(const Box& box, DecisionPoint point, const Space& space, const Facts& facts) {
  const Writer writer(box, point, space, facts);
  Crossing crossing;
  crossing.point = point;
  if (HasVia(point)) {
    crossing.via = writer.Hub();
    crossing.to = writer.Receiver();
  } else {
    crossing.to = writer.Hub();
  }
  const bool is_model =
      point == DecisionPoint::kModelToSite || point == DecisionPoint::kModelDownload;
  if (is_model) {
    crossing.kinds = {UpdateKind::kModelFinal};
  } else {
    for (const std::uint16_t value : writer.At(Dim::kKind)) {
      crossing.kinds.push_back(AllOf<UpdateKind>()[value]);
    }
    for (const std::uint16_t value : writer.At(Dim::kView)) {
      crossing.views.push_back(AllOf<View>()[value]);
    }
  }
  for (const std::uint16_t value : writer.At(Dim::kPurpose)) {
    const auto& members = space.purposes()[value].members;
    crossing.purposes.insert(crossing.purposes.end(), members.begin(), members.end());
  }
  std::sort(crossing.purposes.begin(), crossing.purposes.end());
  crossing.periods = writer.Periods();
  crossing.requests = WeightOf(box, point, space);
  return crossing;
}

std::set<Jurisdiction> BlocAt(std::string_view bloc, const Facts& facts, WallTime now) {
  std::set<Jurisdiction> members;
  for (const Fact& fact : facts.facts) {
    if (fact.kind == FactKind::kBloc && fact.bloc == bloc && fact.HoldsAt(now)) {
      members.insert(fact.members.begin(), fact.members.end());
    }
  }
  return members;
}

}  // namespace

std::vector<std::string> NamePlaces(const std::vector<Jurisdiction>& places, std::size_t all,
                                    const Facts& facts, WallTime now) {
  if (places.empty()) {
    return {};
  }
  if (places.size() == all) {
    return {"every place"};
  }
  std::set<Jurisdiction> left(places.begin(), places.end());
  std::vector<std::string> names;
  // The widest bloc first: `EEA` says all that `EU` does.
  std::vector<std::pair<std::size_t, std::string_view>> blocs;
  for (const std::string_view bloc : BlocNames()) {
    blocs.emplace_back(BlocAt(bloc, facts, now).size(), bloc);
  }
  std::sort(blocs.rbegin(), blocs.rend());
  for (const auto& [size, bloc] : blocs) {
    const std::set<Jurisdiction> members = BlocAt(bloc, facts, now);
    if (size > 0 && std::includes(left.begin(), left.end(), members.begin(), members.end())) {
      names.emplace_back(bloc);
      for (const Jurisdiction& member : members) {
        left.erase(member);
      }
    }
  }
  constexpr std::size_t kFew = 12;
  if (left.size() > kFew && places.size() * 2 > all) {
    std::set<Jurisdiction> missing;
    for (const std::string_view code : CountryCodes()) {
      missing.insert(*Jurisdiction::Parse(code));
    }
    for (const Jurisdiction& place : places) {
      missing.erase(place);
    }
    if (missing.size() + places.size() == all) {  // no subdivision is missing
      std::string text = "every place but";
      for (const Jurisdiction& place : missing) {
        text += " " + place.text();
      }
      return {text};
    }
  }
  for (const Jurisdiction& place : left) {
    names.push_back(place.text());
  }
  return names;
}

std::vector<Crossing> Merge(std::span<const Key> keys, DecisionPoint point, const Space& space,
                            const Facts& facts, const std::string& site,
                            const DatasetAlias& dataset) {
  std::vector<Crossing> crossings;
  for (const Box& box : MergeAll(keys, space)) {
    crossings.push_back(ToCrossing(box, point, space, facts));
    crossings.back().site = site;
    crossings.back().dataset = dataset.text();
  }
  return crossings;
}

}  // namespace domicile::policy::analysis::internal
