#include "policy/analysis/internal/ways.h"

#include <algorithm>

namespace domicile::policy::analysis::internal {
namespace {

constexpr DimSet kHub = Only(Dim::kHubPlace) | Only(Dim::kHubControl);

bool IsBefore(const std::vector<Hop>& a, const std::vector<Hop>& b) {
  return a.size() != b.size() ? a.size() < b.size() : a.back().transfer.now < b.back().transfer.now;
}

}  // namespace

bool WayFinder::IsThere(const Jurisdiction& place, WallTime now) const {
  return Overlaps(question_.to, place, facts_, now, nullptr) != Cover::kNo;
}

bool WayFinder::IsThere(const Jurisdiction& place, const Jurisdiction& control,
                        WallTime now) const {
  return (question_.by != By::kControl && IsThere(place, now)) ||
         (question_.by != By::kPlace && IsThere(control, now));
}

bool WayFinder::IsAsked(const Transfer& transfer) const {
  const bool is_model = transfer.point == DecisionPoint::kModelToSite ||
                        transfer.point == DecisionPoint::kModelDownload;
  const bool kind_fits =
      question_.kinds.empty() ||
      std::any_of(transfer.kinds.begin(), transfer.kinds.end(),
                  [this](UpdateKind kind) { return question_.kinds.contains(kind); });
  return kind_fits && (!question_.view || (!is_model && transfer.view >= *question_.view));
}

bool WayFinder::IsAllowed(const Transfer& transfer) {
  ++decisions_;
  return Answer(effective_, transfer) == Result::kAllow;
}

void WayFinder::Ask(DecisionPoint point, const Visit& visit, const Part& part) {
  Explorer explorer(effective_, space_, base_);
  explorer.Run(point, visit, part);
  decisions_ += explorer.decisions();
}

Hop WayFinder::MakeHop(const Key& key, Transfer transfer) {
  ++decisions_;
  const Decision decision = Simulate(effective_, transfer);
  // INVARIANT: a way is told only if Decide allowed each hop as it is told.
  DOMICILE_CHECK(decision.result == Result::kAllow);
  return {std::move(transfer), space_.dates()[key[Dim::kDate]], decision.rules};
}

std::vector<Hop> WayFinder::Extend(const std::vector<Hop>& way, const Key& key, Transfer transfer) {
  const std::string& known = way.back().transfer.to.jurisdiction;
  if (transfer.via && transfer.via->jurisdiction != known) {
    // Any two countries of a class are alike: exchange them.
    const bool is_hubs_country = transfer.to.jurisdiction == transfer.via->jurisdiction;
    const bool is_known = transfer.to.jurisdiction == known;
    transfer.to.jurisdiction = is_hubs_country ? known
                               : is_known      ? transfer.via->jurisdiction
                                               : transfer.to.jurisdiction;
    transfer.via->jurisdiction = known;
  }
  std::vector<Hop> longer = way;
  longer.push_back(MakeHop(key, std::move(transfer)));
  return longer;
}

void WayFinder::Keep(const std::vector<Hop>& way) {
  if (best_.empty() || IsBefore(way, best_)) {
    best_ = way;
  }
}

bool WayFinder::HasRecipient(const Key& key, const Transfer& egress) {
  Transfer offer = egress;
  offer.point = DecisionPoint::kOffer;
  Party& known = recipients_[{{key[Dim::kHubPlace], key[Dim::kHubControl]},
                              {key[Dim::kDate], key[Dim::kPurpose]}}];
  if (known.role != PartyRole::kNone) {
    offer.recipients = {known};
    if (IsAllowed(offer)) {
      return true;
    }
  }
  bool found = false;
  constexpr DimSet kContribution = kHub | Only(Dim::kHubOrganisation) | Only(Dim::kDate) |
                                   Only(Dim::kView) | Only(Dim::kPurpose) | Only(Dim::kKind);
  Ask(DecisionPoint::kOffer,
      [&](const Key&, const Transfer& allowed, Result) {
        known = allowed.recipients.front();
        found = true;
        return Next::kStop;
      },
      {.fixed = kContribution, .start = key});
  return found;
}

bool WayFinder::IsWhole(const Key& key, const Transfer& egress) {
  Transfer ingress = egress;
  ingress.point = DecisionPoint::kIngress;
  return IsAllowed(ingress) && HasRecipient(key, egress);
}

std::map<WayFinder::Hub, WayFinder::Arrivals> WayFinder::Contribute() {
  std::map<Hub, Arrivals> hubs;
  Part part;
  if (question_.purpose) {
    part.wanted = [this](const Key& key, Dim dim) {
      const auto& members = space_.purposes()[key[Dim::kPurpose]].members;
      return dim != Dim::kPurpose ||
             std::count(members.begin(), members.end(), *question_.purpose) > 0;
    };
  }
  const auto visit = [&](const Key& key, const Transfer& transfer, Result) {
    const Hub hub = {key[Dim::kHubPlace], key[Dim::kHubControl]};
    const bool ends =
        IsAsked(transfer) &&
        IsThere(space_.places()[hub.first].first, space_.control()[hub.second].first, transfer.now);
    Arrivals& arrivals = hubs[hub];
    const bool is_news = !arrivals.contains(key[Dim::kPurpose]);
    if ((is_news || (ends && best_.empty())) && IsWhole(key, transfer)) {
      Arrival arrival = {key[Dim::kDate], {MakeHop(key, transfer)}};
      if (ends) {
        Keep(arrival.way);
      }
      arrivals.emplace(key[Dim::kPurpose], std::move(arrival));
    }
    return best_.empty() ? Next::kEach : Next::kStop;  // dates come in order: it is the earliest
  };
  Ask(DecisionPoint::kEgress, visit, part);
  std::erase_if(hubs, [](const auto& hub) { return hub.second.empty(); });
  return hubs;
}

bool WayFinder::IsReleased(const Arrival& arrival, std::uint16_t date) {
  Transfer release = arrival.way.back().transfer;
  release.point = DecisionPoint::kAggregateRelease;
  release.via.reset();
  for (std::uint16_t at = arrival.date; at <= date; ++at) {
    release.now = space_.dates()[at].from;
    if (IsAllowed(release)) {
      return true;
    }
  }
  return false;
}

void WayFinder::Give(DecisionPoint point, const Hub& hub, const Arrivals& arrivals) {
  Part part = {.fixed = kHub};
  part.start[Dim::kHubPlace] = hub.first;
  part.start[Dim::kHubControl] = hub.second;
  part.wanted = [&](const Key& key, Dim dim) {
    if (dim == Dim::kToControl) {
      const ToPlace& place = space_.to_places()[key[Dim::kToPlace]];
      return IsThere(space_.places()[place.place_class].first,
                     space_.control()[key[Dim::kToControl]].first,
                     space_.dates()[key[Dim::kDate]].from);
    }
    const auto arrival = arrivals.find(key[Dim::kPurpose]);
    return dim != Dim::kPurpose ||
           (arrival != arrivals.end() && arrival->second.date <= key[Dim::kDate]);
  };
  const auto visit = [&](const Key& key, const Transfer& transfer, Result) {
    const Arrival& arrival = arrivals.at(key[Dim::kPurpose]);
    const bool is_model = point != DecisionPoint::kView;
    if (!IsAsked(transfer) || (is_model && !IsReleased(arrival, key[Dim::kDate]))) {
      return Next::kEach;
    }
    Keep(Extend(arrival.way, key, transfer));
    return Next::kStop;  // dates come in order: no other is earlier
  };
  Ask(point, visit, part);
}

void WayFinder::GiveToParents(const Hub& hub, const Arrivals& arrivals,
                              std::map<Hub, Arrivals>& parents) {
  Part part = {.fixed = kHub};
  part.start[Dim::kHubPlace] = hub.first;
  part.start[Dim::kHubControl] = hub.second;
  part.wanted = [&arrivals](const Key& key, Dim dim) {
    const auto arrival = arrivals.find(key[Dim::kPurpose]);
    return dim != Dim::kPurpose ||
           (arrival != arrivals.end() && arrival->second.date <= key[Dim::kDate]);
  };
  const auto visit = [&](const Key& key, const Transfer& transfer, Result) {
    const ToPlace& place = space_.to_places()[key[Dim::kToPlace]];
    const Hub parent = {static_cast<std::uint16_t>(place.place_class), key[Dim::kToControl]};
    const bool ends =
        IsAsked(transfer) && IsThere(space_.places()[parent.first].first,
                                     space_.control()[parent.second].first, transfer.now);
    const bool is_news = !parents[parent].contains(key[Dim::kPurpose]);
    if (is_news || ends) {
      std::vector<Hop> way = Extend(arrivals.at(key[Dim::kPurpose]).way, key, transfer);
      if (ends) {
        Keep(way);
      }
      parents[parent].emplace(key[Dim::kPurpose], Arrival{key[Dim::kDate], std::move(way)});
    }
    return Next::kEach;
  };
  Ask(DecisionPoint::kParentSum, visit, part);
}

std::map<WayFinder::Hub, WayFinder::Arrivals> WayFinder::HandOn(const Hub& hub,
                                                                const Arrivals& arrivals) {
  for (const DecisionPoint point :
       {DecisionPoint::kModelToSite, DecisionPoint::kModelDownload, DecisionPoint::kView}) {
    Give(point, hub, arrivals);
  }
  std::map<Hub, Arrivals> parents;
  GiveToParents(hub, arrivals, parents);
  return parents;
}

std::vector<Hop> WayFinder::Find() {
  std::map<Hub, Arrivals> layer = Contribute();
  // The earliest date at which a hub was seen with a purpose: later is not news.
  std::map<Hub, std::map<std::uint16_t, std::uint16_t>> seen;
  while (best_.empty() && !layer.empty()) {
    std::map<Hub, Arrivals> next;
    for (auto& [hub, arrivals] : layer) {
      auto& dates = seen[hub];
      std::erase_if(arrivals, [&dates](const auto& arrival) {
        const auto known = dates.find(arrival.first);
        return known != dates.end() && known->second <= arrival.second.date;
      });
      for (const auto& [purpose, arrival] : arrivals) {
        dates[purpose] = arrival.date;
      }
      if (arrivals.empty()) {
        continue;
      }
      for (auto& [parent, more] : HandOn(hub, arrivals)) {
        for (auto& [purpose, arrival] : more) {
          const auto [at, is_new] = next[parent].emplace(purpose, arrival);
          if (!is_new && arrival.date < at->second.date) {
            at->second = arrival;
          }
        }
      }
    }
    layer = std::move(next);
  }
  return best_;
}

}  // namespace domicile::policy::analysis::internal
