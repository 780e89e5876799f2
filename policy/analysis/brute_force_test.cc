// Analyses against brute force: one answer of Decide for each single request of small worlds.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "policy/analysis/internal/explorer.h"
#include "policy/analysis/random_world.h"
#include "policy/analysis/reach.h"

namespace domicile::policy::analysis {
namespace {

constexpr std::uint64_t kWorlds = kIsSanitized ? 3 : 40;

const DatasetAlias kHeart = *DatasetAlias::Parse("heart");

struct Prepared {
  explicit Prepared(std::uint64_t seed)
      : world(RandomWorld(seed)),
        site(world.policies.back()),
        effective(EffectiveOf(world, site)),
        terms(effective.Find(kHeart)),
        base(internal::PermissiveTransfer(site, kHeart, terms.get())) {}

  World world;
  Policy site;
  Effective effective;
  std::shared_ptr<const Terms> terms;
  Transfer base;
};

template <typename T, typename Contains>
std::size_t IndexOf(const std::vector<T>& values, const Contains& contains) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (contains(values[i])) {
      return i;
    }
  }
  return values.size();
}

std::size_t ClassOf(const std::vector<internal::PlaceClass>& classes, const std::string& place) {
  return IndexOf(classes, [&place](const internal::PlaceClass& each) {
    return std::any_of(each.members.begin(), each.members.end(),
                       [&place](const Jurisdiction& member) { return member.text() == place; });
  });
}

std::uint16_t Narrow(std::size_t index) { return static_cast<std::uint16_t>(index); }

// The key whose class a request is in.
internal::Key KeyOf(const internal::Space& space, const Transfer& transfer) {
  using internal::Dim;
  internal::Key key;
  const DecisionPoint point = transfer.point;
  const Party& hub = transfer.via ? *transfer.via : transfer.to;
  key[Dim::kHubPlace] = Narrow(ClassOf(space.places(), hub.jurisdiction));
  key[Dim::kHubControl] = Narrow(ClassOf(space.control(), hub.control.front()));
  const auto organisation = [&space](const std::string& name) {
    const std::size_t last = space.organisations().size() - 1;
    return Narrow(std::min(
        IndexOf(space.organisations(), [&name](const std::string& each) { return each == name; }),
        last));
  };
  if (transfer.via) {
    const std::size_t place = ClassOf(space.places(), transfer.to.jurisdiction);
    const bool may_share = place == key[Dim::kHubPlace] && space.places()[place].elsewhere;
    const internal::Relation relation = !may_share ? internal::Relation::kAny
                                        : hub.jurisdiction == transfer.to.jurisdiction
                                            ? internal::Relation::kHubsCountry
                                            : internal::Relation::kAnotherCountry;
    key[Dim::kToPlace] = Narrow(IndexOf(space.to_places(), [&](const internal::ToPlace& each) {
      return each.place_class == place && each.relation == relation;
    }));
    key[Dim::kToControl] = Narrow(ClassOf(space.control(), transfer.to.control.front()));
    key[Dim::kToOrganisation] = organisation(transfer.to.organisation);
    const auto who = space.WhoAt(point);
    std::size_t found = IndexOf(who, [&](const internal::Who& each) {
      return each.role == transfer.to.role && each.id == transfer.to.id;
    });
    if (found == who.size()) {  // whom no rule names: the last of the role
      for (std::size_t i = 0; i < who.size(); ++i) {
        found = who[i].role == transfer.to.role ? i : found;
      }
    }
    key[Dim::kWho] = Narrow(found);
  } else {
    key[Dim::kHubOrganisation] = organisation(transfer.to.organisation);
  }
  key[Dim::kDate] = Narrow(IndexOf(space.dates(), [&transfer](const Period& period) {
    return period.from <= transfer.now && transfer.now < period.until;
  }));
  key[Dim::kPurpose] = Narrow(IndexOf(space.purposes(), [&](const internal::PurposeClass& each) {
    return std::count(each.members.begin(), each.members.end(), transfer.purpose) > 0;
  }));
  if (space.Size(point, Dim::kKind) > 1) {
    key[Dim::kKind] = Narrow(static_cast<std::size_t>(transfer.kinds.front()) - 1);
    key[Dim::kView] = Narrow(static_cast<std::size_t>(transfer.view) - 1);
  }
  return key;
}

// Every request of the small space that is answered otherwise by its class.
std::size_t CountDifferences(const Prepared& prepared, DecisionPoint point, std::size_t& allowed) {
  const std::array<const World*, 1> worlds = {&prepared.world};
  const internal::Space space =
      internal::Space::About(worlds, prepared.site.identity.id, kHeart, RandomWorldWindow(), {});
  std::set<internal::Key> not_denied;
  internal::Explorer explorer(prepared.effective, space, prepared.base);
  explorer.Run(point, [&](const internal::Key& key, const Transfer&, Result) {
    not_denied.insert(key);
    return internal::Next::kEach;
  });
  std::size_t differences = 0;
  SmallSpace small = SmallSpaceOf(prepared.world, RandomWorldWindow());
  // A subdivision that nothing names is no place of the space.
  std::erase_if(small.places, [&space](const std::string& place) {
    return ClassOf(space.places(), place) == space.places().size();
  });
  EachRequest(small, point, prepared.base, [&](const Transfer& transfer) {
    const bool is_allowed = Answer(prepared.effective, transfer) == Result::kAllow;
    allowed += is_allowed ? 1 : 0;
    differences += is_allowed != not_denied.contains(KeyOf(space, transfer)) ? 1 : 0;
    return true;
  });
  return differences;
}

// Brute force over the small space: whether what the site sends can be somewhere, in any number of
// hops. Follows the requests, not the classes.
class BruteReach {
 public:
  BruteReach(const Prepared& prepared, std::string to)
      : prepared_(prepared),
        to_(std::move(to)),
        space_(SmallSpaceOf(prepared.world, RandomWorldWindow())) {
    space_.purposes = {Purpose::kScientificResearch, Purpose::kEducation};
    space_.control = {"DE", "IE", "CH", "US", "CN", "JP"};
    if (NamesCalifornia(prepared)) {
      space_.control.emplace_back("US-CA");
    } else {
      std::erase(space_.places, "US-CA");
    }
  }

  bool Reaches() {
    std::vector<State> states = Contributions();
    std::set<State> seen(states.begin(), states.end());
    while (!reached_ && !states.empty()) {
      const State state = states.back();
      states.pop_back();
      for (const State& next : HandOn(state)) {
        if (seen.insert(next).second) {
          states.push_back(next);
        }
      }
    }
    return reached_;
  }

 private:
  // An aggregator that holds something: place, control, purpose, since when.
  using State = std::tuple<std::string, std::string, Purpose, WallTime>;

  static bool NamesCalifornia(const Prepared& prepared) {
    const internal::Space space =
        internal::Space::About(std::array<const World*, 1>{&prepared.world},
                               prepared.site.identity.id, kHeart, RandomWorldWindow(), {});
    return ClassOf(space.places(), "US-CA") != space.places().size();
  }

  bool IsAllowed(const Transfer& transfer) const {
    return Answer(prepared_.effective, transfer) == Result::kAllow;
  }
  bool IsThere(const Party& party) const {
    return IsThere(party.jurisdiction) || IsThere(party.control.front());
  }
  bool IsThere(const std::string& place) const {
    return place == to_ || place.starts_with(to_ + "-") || to_.starts_with(place + "-");
  }

  bool HasRecipient(const Transfer& contribution) const {
    bool found = false;
    Transfer offer = contribution;
    offer.point = DecisionPoint::kOffer;
    SmallSpace receivers = space_;
    receivers.dates = {contribution.now};
    receivers.purposes = {contribution.purpose};
    receivers.hub_places = {contribution.to.jurisdiction};
    receivers.hub_control = contribution.to.control;
    for (const DecisionPoint point : {DecisionPoint::kModelToSite, DecisionPoint::kModelDownload}) {
      EachRequest(receivers, point, prepared_.base, [&](const Transfer& model) {
        offer.recipients = {model.to};
        found = found || IsAllowed(offer);
        return !found;
      });
    }
    return found;
  }

  std::vector<State> Contributions() {
    std::set<State> states;
    EachRequest(space_, DecisionPoint::kEgress, prepared_.base, [&](const Transfer& transfer) {
      const State state = {transfer.to.jurisdiction, transfer.to.control.front(), transfer.purpose,
                           transfer.now};
      if (states.contains(state) || !IsAllowed(transfer)) {
        return true;
      }
      Transfer ingress = transfer;
      ingress.point = DecisionPoint::kIngress;
      if (IsAllowed(ingress) && HasRecipient(transfer)) {
        states.insert(state);
        reached_ = reached_ || IsThere(transfer.to);
      }
      return !reached_;
    });
    return {states.begin(), states.end()};
  }

  bool IsReleased(const State& state, WallTime until) const {
    const auto& [place, control, purpose, since] = state;
    for (const WallTime date : space_.dates) {
      Transfer release = prepared_.base;
      release.point = DecisionPoint::kAggregateRelease;
      release.to = {PartyRole::kAggregator, "main", "any", place, {control}};
      release.to.evidence = LocationEvidence::kAttested;
      release.purpose = purpose;
      release.view = View::kAggregateOnly;
      release.now = date;
      for (const UpdateKind kind : AllOf<UpdateKind>()) {
        release.kinds = {kind};
        if (date >= since && date <= until && IsAllowed(release)) {
          return true;
        }
      }
    }
    return false;
  }

  std::set<State> HandOn(const State& state) {
    std::set<State> next;
    SmallSpace receivers = space_;
    receivers.hub_places = {std::get<0>(state)};
    receivers.hub_control = {std::get<1>(state)};
    receivers.purposes = {std::get<2>(state)};
    for (const DecisionPoint point : {DecisionPoint::kModelToSite, DecisionPoint::kModelDownload,
                                      DecisionPoint::kView, DecisionPoint::kParentSum}) {
      EachRequest(receivers, point, prepared_.base, [&](const Transfer& transfer) {
        const bool is_parent = point == DecisionPoint::kParentSum;
        if (transfer.now < std::get<3>(state) || (!is_parent && !IsThere(transfer.to)) ||
            !IsAllowed(transfer)) {
          return true;
        }
        const bool is_model =
            point == DecisionPoint::kModelToSite || point == DecisionPoint::kModelDownload;
        if (is_model && !IsReleased(state, transfer.now)) {
          return true;
        }
        reached_ = reached_ || IsThere(transfer.to);
        if (is_parent) {
          next.insert({transfer.to.jurisdiction, transfer.to.control.front(), transfer.purpose,
                       transfer.now});
        }
        return !reached_;
      });
    }
    return next;
  }

  const Prepared& prepared_;
  std::string to_;
  SmallSpace space_;
  bool reached_ = false;
};

}  // namespace

TEST_CASE("Reach: as brute force, in any number of hops; a way is told only if there is one") {
  std::size_t reached = 0;
  std::size_t never = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    const Prepared prepared(seed);
    for (const std::string to : {"CH", "US", "JP"}) {
      CAPTURE(seed);
      CAPTURE(to);
      ReachQuestion question;
      question.to = *Area::Parse(to);
      question.window = RandomWorldWindow();
      const ReachResult result = Reach(prepared.world, question);
      REQUIRE(result.datasets.size() == 1);
      const DatasetReach& answer = result.datasets.front();
      if (answer.is_there) {
        continue;
      }
      CHECK(answer.reaches == BruteReach(prepared, to).Reaches());
      CHECK(answer.reaches == !answer.way.empty());
      WallTime last = question.window.from;
      for (const Hop& hop : answer.way) {
        CHECK(Answer(prepared.effective, hop.transfer) == Result::kAllow);
        CHECK(hop.transfer.now >= last);
        last = hop.transfer.now;
      }
      (answer.reaches ? reached : never) += 1;
    }
  }
  if (!kIsSanitized) {
    CHECK(reached >= 5);
    CHECK(never >= 5);
  }
}

TEST_CASE("Explorer: every class answers as each of its requests does, contributions") {
  std::size_t allowed = 0;
  CHECK(rc::check([&allowed](std::uint64_t seed) {
    const Prepared prepared(seed);
    for (const DecisionPoint point : {DecisionPoint::kEgress, DecisionPoint::kAggregateRelease}) {
      RC_ASSERT(CountDifferences(prepared, point, allowed) == 0U);
    }
  }));
  CHECK(allowed > 1000);
}

TEST_CASE("Explorer: every class answers as each of its requests does, what is handed on") {
  std::size_t allowed = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    const Prepared prepared(seed);
    for (const DecisionPoint point : {DecisionPoint::kModelToSite, DecisionPoint::kModelDownload}) {
      CHECK(CountDifferences(prepared, point, allowed) == 0);
    }
  }
  CHECK(allowed > 100);
}

}  // namespace domicile::policy::analysis
