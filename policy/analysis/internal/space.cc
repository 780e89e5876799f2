#include "policy/analysis/internal/space.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policy/analysis/internal/classes.h"
#include "policy/engine/fold.h"

namespace domicile::policy::analysis::internal {
namespace {

// A name that no rule can be about.
constexpr std::string_view kUnnamed = "another";

constexpr std::array<DecisionPoint, 7> kPoints = {
    DecisionPoint::kEgress,      DecisionPoint::kIngress,       DecisionPoint::kAggregateRelease,
    DecisionPoint::kModelToSite, DecisionPoint::kModelDownload, DecisionPoint::kView,
    DecisionPoint::kParentSum};

bool IsModelPoint(DecisionPoint point) {
  return point == DecisionPoint::kModelToSite || point == DecisionPoint::kModelDownload;
}

// All that can tell requests about the dataset apart, gathered over both worlds.
struct Gathered {
  Distinctions places;
  Distinctions control;
  std::set<Regime> regimes;
  std::set<std::string> site_names;
  std::set<std::string> operator_names;
  std::set<std::string> organisations;
  std::set<std::set<Purpose>> purposes;
  std::set<WallTime> instants;
  WallTime end;
};

template <typename T>
void AddAreas(const Clauses<std::set<T>>& clauses, std::set<std::set<T>>& lists) {
  for (const auto& clause : clauses) {
    lists.insert(clause.value);
  }
}

void AddTokens(const Clauses<std::set<std::string>>& clauses, Gathered& gathered) {
  constexpr std::string_view kOperator = "operator/";
  for (const auto& clause : clauses) {
    for (const std::string& token : clause.value) {
      if (token.starts_with(kOperator)) {
        gathered.operator_names.insert(token.substr(kOperator.size()));
      } else if (token != "sites" && token != "operator") {
        gathered.site_names.insert(token);
      }
    }
  }
}

void AddTerms(const Terms& terms, Gathered& gathered) {
  for (const auto* clauses :
       {&terms.aggregator_locations, &terms.model_recipients, &terms.deny_locations,
        &terms.aggregator_control, &terms.deny_control}) {
    AddAreas(*clauses, gathered.places.areas);
  }
  AddAreas(terms.aggregator_control, gathered.control.areas);
  AddAreas(terms.model_recipients, gathered.control.areas);
  AddAreas(terms.deny_control, gathered.control.areas);
  for (const auto& clause : terms.traits) {
    gathered.regimes.insert(clause.value.regimes.begin(), clause.value.regimes.end());
  }
  for (const auto& clause : terms.grounds) {
    for (const TransferGround& ground : clause.value) {
      gathered.places.areas.insert({ground.to});
      gathered.organisations.insert(ground.importer);
      if (ground.valid_until) {
        gathered.instants.insert(*ground.valid_until);
      }
    }
  }
  AddTokens(terms.recipients, gathered);
  AddTokens(terms.deny_recipients, gathered);
  AddAreas(terms.purposes, gathered.purposes);
  AddAreas(terms.deny_purposes, gathered.purposes);
}

void AddFacts(const Facts& facts, Gathered& gathered) {
  gathered.instants.insert(facts.expires);
  for (const Fact& fact : facts.facts) {
    const bool is_bloc = fact.kind == FactKind::kBloc;
    if (!is_bloc && !gathered.regimes.contains(fact.regime)) {
      continue;  // no dataset is under it: nobody asks for it
    }
    gathered.places.areas.insert(fact.from);
    gathered.places.areas.insert(fact.to);
    if (fact.kind == FactKind::kCountryOfConcern || fact.kind == FactKind::kNegativeList) {
      gathered.control.areas.insert(fact.to);
    }
    gathered.instants.insert(fact.from_date);
    if (fact.until_date) {
      gathered.instants.insert(*fact.until_date);
    }
  }
}

void AddPolicy(const Policy& policy, const DatasetAlias& dataset, Gathered& gathered) {
  gathered.instants.insert(policy.identity.not_before);
  gathered.instants.insert(policy.identity.expires);
  gathered.end = std::max(gathered.end, policy.identity.expires);
  if (policy.site) {
    gathered.places.countries.insert(std::string(policy.site->jurisdiction.Country()));
    gathered.places.areas.insert({Area::Of(policy.site->jurisdiction)});
    gathered.control.areas.insert({Area::Of(policy.site->jurisdiction)});
    for (const Jurisdiction& place : policy.site->control_jurisdictions) {
      gathered.places.areas.insert({Area::Of(place)});
      gathered.control.areas.insert({Area::Of(place)});
    }
  }
  if (const PolicyDataset* described = policy.Find(dataset)) {
    for (const auto* document :
         {&described->dpia, &described->tia, &described->permit, &described->baa}) {
      if (*document) {
        gathered.instants.insert((*document)->valid_until);
      }
    }
  }
}

Gathered Gather(std::span<const World* const> worlds, const std::string& site,
                const DatasetAlias& dataset, const std::set<Area>& named) {
  Gathered gathered;
  for (const World* world : worlds) {
    for (const Policy& policy : world->policies) {
      if (policy.source == PolicySource::kSite && policy.identity.id != site) {
        continue;
      }
      AddPolicy(policy, dataset, gathered);
      if (policy.source == PolicySource::kSite) {
        if (const auto terms = EffectiveOf(*world, policy).Find(dataset)) {
          AddTerms(*terms, gathered);
        }
      }
    }
  }
  for (const World* world : worlds) {
    AddFacts(world->facts, gathered);
  }
  for (const Area& area : named) {
    gathered.places.areas.insert({area});
    gathered.control.areas.insert({area});
    if (!area.IsBloc()) {
      gathered.places.countries.insert(std::string(area.Place().Country()));
    }
  }
  for (const World* world : worlds) {
    AddBlocs(world->facts, gathered.places);
    AddBlocs(world->facts, gathered.control);
  }
  return gathered;
}

std::vector<Period> SplitDates(const Gathered& gathered, const Window& window) {
  const WallTime end =
      std::max(window.until.value_or(gathered.end), window.from + std::chrono::nanoseconds(1));
  std::vector<Period> periods;
  WallTime start = window.from;
  for (const WallTime instant : gathered.instants) {
    if (instant > start && instant < end) {
      periods.push_back({start, instant});
      start = instant;
    }
  }
  periods.push_back({start, end});
  return periods;
}

std::vector<PurposeClass> SplitPurposes(const Gathered& gathered) {
  std::vector<PurposeClass> classes;
  std::map<std::vector<bool>, std::size_t> found;
  for (const Purpose purpose : AllOf<Purpose>()) {
    std::vector<bool> signature;
    for (const std::set<Purpose>& list : gathered.purposes) {
      signature.push_back(list.contains(purpose));
    }
    const auto [at, is_new] = found.emplace(std::move(signature), classes.size());
    if (is_new) {
      classes.push_back({purpose, {purpose}});
    } else {
      classes[at->second].members.push_back(purpose);
    }
  }
  return classes;
}

std::vector<Who> ListWho(const Gathered& gathered) {
  std::vector<Who> who = {{PartyRole::kAggregator, "parent", "aggregator"}};
  const auto add = [&who](PartyRole role, const std::set<std::string>& names) {
    const std::string code(Code(role));
    for (const std::string& name : names) {
      who.push_back({role, name, code + " " + name});
    }
    std::string unnamed(kUnnamed);
    while (names.contains(unnamed)) {
      unnamed += "-x";
    }
    who.push_back({role, unnamed, names.empty() ? code : "any other " + code});
  };
  add(PartyRole::kSite, gathered.site_names);
  add(PartyRole::kOperator, gathered.operator_names);
  who.push_back({PartyRole::kAuditor, "auditor", "auditor"});
  return who;
}

std::vector<std::string> ListOrganisations(std::set<std::string> named) {
  named.erase("");
  std::vector<std::string> all(named.begin(), named.end());
  std::string unnamed(kUnnamed);
  while (named.contains(unnamed)) {
    unnamed += "-x";
  }
  all.push_back(std::move(unnamed));
  return all;
}

}  // namespace

std::span<const DecisionPoint> AllPoints() { return kPoints; }

bool HasVia(DecisionPoint point) {
  return IsModelPoint(point) || point == DecisionPoint::kView || point == DecisionPoint::kParentSum;
}

bool HasSecond(DecisionPoint point) { return HasVia(point) || point == DecisionPoint::kOffer; }

std::size_t KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const std::uint16_t value : key.at) {
    hash = (hash ^ value) * 1099511628211U;
  }
  return hash;
}

Space Space::About(std::span<const World* const> worlds, const std::string& site,
                   const DatasetAlias& dataset, const Window& window, const std::set<Area>& named) {
  Gathered gathered = Gather(worlds, site, dataset, named);
  Space space;
  space.places_ = SplitPlaces(gathered.places);
  space.control_ = SplitPlaces(gathered.control);
  for (std::size_t i = 0; i < space.places_.size(); ++i) {
    space.to_places_.push_back({i, Relation::kAny});
    if (space.places_[i].elsewhere) {
      space.to_places_.push_back({i, Relation::kHubsCountry});
      space.to_places_.push_back({i, Relation::kAnotherCountry});
    }
  }
  if (gathered.regimes.contains(Regime::kUsHipaa)) {
    gathered.organisations.insert(std::string(kOwnOrganisation));  // needs no agreement with itself
  }
  space.organisations_ = ListOrganisations(gathered.organisations);
  space.who_ = ListWho(gathered);
  space.purposes_ = SplitPurposes(gathered);
  space.dates_ = SplitDates(gathered, window);
  return space;
}

std::vector<Who> Space::WhoAt(DecisionPoint point) const {
  std::vector<Who> fitting;
  for (const Who& who : who_) {
    const bool fits = (point == DecisionPoint::kModelToSite && who.role == PartyRole::kSite) ||
                      ((point == DecisionPoint::kModelDownload || point == DecisionPoint::kOffer) &&
                       (who.role == PartyRole::kSite || who.role == PartyRole::kOperator)) ||
                      (point == DecisionPoint::kView &&
                       (who.role == PartyRole::kOperator || who.role == PartyRole::kAuditor)) ||
                      (point == DecisionPoint::kParentSum && who.role == PartyRole::kAggregator);
    if (fits) {
      fitting.push_back(who);
    }
  }
  return fitting;
}

std::size_t Space::Size(DecisionPoint point, Dim dim) const {
  const bool has_second = HasSecond(point);
  switch (dim) {
    case Dim::kDate:
      return dates_.size();
    case Dim::kHubPlace:
      return places_.size();
    case Dim::kHubControl:
      return control_.size();
    case Dim::kHubOrganisation:
      return HasVia(point) ? 1 : organisations_.size();
    case Dim::kWho:
      return has_second ? WhoAt(point).size() : 1;
    case Dim::kToPlace:
      return has_second ? to_places_.size() : 1;
    case Dim::kToControl:
      return has_second ? control_.size() : 1;
    case Dim::kToOrganisation:
      return has_second ? organisations_.size() : 1;
    case Dim::kView:
      return IsModelPoint(point) ? 1 : AllOf<View>().size();
    case Dim::kPurpose:
      return purposes_.size();
    case Dim::kKind:
      return IsModelPoint(point) ? 1 : AllOf<UpdateKind>().size();
  }
  return 1;
}

bool Space::Fits(DecisionPoint point, const Key& key, Dim just_fixed) const {
  if (just_fixed != Dim::kToPlace || !HasSecond(point)) {
    return true;
  }
  const ToPlace& to = to_places_[key[Dim::kToPlace]];
  const bool may_share =
      to.place_class == key[Dim::kHubPlace] && places_[to.place_class].elsewhere.has_value();
  return may_share == (to.relation != Relation::kAny);
}

void Space::Apply(DecisionPoint point, Dim dim, const Key& key, Transfer& transfer) const {
  const bool has_via = HasVia(point);
  Party& hub = has_via ? *transfer.via : transfer.to;
  Party* second = has_via                          ? &transfer.to
                  : point == DecisionPoint::kOffer ? &transfer.recipients.front()
                                                   : nullptr;
  switch (dim) {
    case Dim::kDate:
      transfer.now = dates_[key[dim]].from;
      for (PresentApproval& approval : transfer.approvals) {
        approval.signed_at = transfer.now;
      }
      return;
    case Dim::kHubPlace:
      hub.jurisdiction = places_[key[dim]].first.text();
      return;
    case Dim::kHubControl:
      hub.control = {control_[key[dim]].first.text()};
      return;
    case Dim::kHubOrganisation:
      hub.organisation = has_via ? organisations_.back() : organisations_[key[dim]];
      return;
    case Dim::kWho:
      if (second != nullptr) {
        const std::vector<Who> fitting = WhoAt(point);
        second->role = fitting[key[dim]].role;
        second->id = fitting[key[dim]].id;
      }
      return;
    case Dim::kToPlace:
      if (second != nullptr) {
        const ToPlace& to = to_places_[key[dim]];
        const PlaceClass& place = places_[to.place_class];
        second->jurisdiction =
            to.relation == Relation::kAnotherCountry ? place.elsewhere->text() : place.first.text();
      }
      return;
    case Dim::kToControl:
      if (second != nullptr) {
        second->control = {control_[key[dim]].first.text()};
      }
      return;
    case Dim::kToOrganisation:
      if (second != nullptr) {
        second->organisation = organisations_[key[dim]];
      }
      return;
    case Dim::kView:
      transfer.view = IsModelPoint(point) ? View::kAggregateOnly : AllOf<View>()[key[dim]];
      return;
    case Dim::kPurpose:
      transfer.purpose = purposes_[key[dim]].first;
      return;
    case Dim::kKind:
      transfer.kinds = {IsModelPoint(point) ? UpdateKind::kModelFinal
                                            : AllOf<UpdateKind>()[key[dim]]};
      return;
  }
}

std::uint64_t Space::Weight(DecisionPoint point, const Key& key) const {
  std::uint64_t weight = places_[key[Dim::kHubPlace]].members.size() *
                         control_[key[Dim::kHubControl]].members.size() *
                         purposes_[key[Dim::kPurpose]].members.size();
  if (HasSecond(point)) {
    const ToPlace& to = to_places_[key[Dim::kToPlace]];
    const std::uint64_t places = places_[to.place_class].members.size();
    weight *= control_[key[Dim::kToControl]].members.size();
    weight *= to.relation == Relation::kAny           ? places
              : to.relation == Relation::kHubsCountry ? 1
                                                      : places - 1;
  }
  return weight;
}

std::uint64_t Space::FullSize(DecisionPoint point) const {
  const auto count = [](const auto& classes) {
    std::uint64_t all = 0;
    for (const auto& each : classes) {
      all += each.members.size();
    }
    return all;
  };
  std::uint64_t size = dates_.size() * count(places_) * count(control_) *
                       Size(point, Dim::kHubOrganisation) * Size(point, Dim::kView) *
                       AllOf<Purpose>().size() * Size(point, Dim::kKind);
  if (HasSecond(point)) {
    size *= Size(point, Dim::kWho) * count(places_) * count(control_) * organisations_.size();
  }
  return size;
}

Covered Space::Cover(std::span<const DecisionPoint> points) const {
  Covered covered;
  covered.sites = 1;
  covered.datasets = 1;
  covered.points = points.size();
  for (const PlaceClass& place : places_) {
    covered.places += place.members.size();
  }
  covered.place_classes = places_.size();
  covered.kinds = AllOf<UpdateKind>().size();
  covered.views = AllOf<View>().size();
  covered.purposes = AllOf<Purpose>().size();
  covered.parties = who_.size() + organisations_.size();
  covered.date_classes = dates_.size();
  for (const DecisionPoint point : points) {
    covered.requests += FullSize(point);
  }
  return covered;
}

}  // namespace domicile::policy::analysis::internal
