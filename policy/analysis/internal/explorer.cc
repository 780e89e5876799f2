#include "policy/analysis/internal/explorer.h"

#include <algorithm>
#include <bit>

namespace domicile::policy::analysis::internal {
namespace {

constexpr int kStopAll = -1;

constexpr DimSet kEverything = (DimSet{1} << kNumDims) - 1;
constexpr DimSet kPlaces = Only(Dim::kHubPlace) | Only(Dim::kToPlace);
constexpr DimSet kControls = Only(Dim::kHubControl) | Only(Dim::kToControl);
constexpr DimSet kOrganisations = Only(Dim::kHubOrganisation) | Only(Dim::kToOrganisation);
constexpr DimSet kDate = Only(Dim::kDate);

Key Restrict(const Key& key, DimSet dims) {
  Key restricted;
  for (std::size_t i = 0; i < kNumDims; ++i) {
    restricted.at[i] = (dims >> i) % 2 == 1 ? key.at[i] : std::uint16_t{0};
  }
  return restricted;
}

// The level after which a search goes on: the last dimension of the group that is done.
int LevelOf(Next next) {
  switch (next) {
    case Next::kEach:
      return static_cast<int>(Dim::kKind);
    case Next::kDate:
      return static_cast<int>(Dim::kDate);
    case Next::kHub:
      return static_cast<int>(Dim::kHubOrganisation);
    case Next::kParty:
      return static_cast<int>(Dim::kToOrganisation);
    case Next::kStop:
      return kStopAll;
  }
  return static_cast<int>(Dim::kKind);
}

}  // namespace

DimSet DependsOn(Reason reason) {
  switch (reason) {
    case Reason::kPolicyUnsatisfiable:
    case Reason::kJurisdictionMismatch:
    case Reason::kDatasetUnknown:
    case Reason::kNoRuleMatched:
      return 0;
    case Reason::kPolicyExpired:
    case Reason::kPolicyNotYetValid:
      return kDate;
    case Reason::kPurpose:
      return Only(Dim::kPurpose);
    case Reason::kUpdateKind:
      return Only(Dim::kKind);
    case Reason::kView:
    case Reason::kSecureAggregationRequired:
      return Only(Dim::kView);
    case Reason::kRecipient:
      return Only(Dim::kWho);
    case Reason::kLocation:
      return kDate | kPlaces;
    case Reason::kControl:
      return kDate | kControls;
    case Reason::kEdpbUseCase6:
    case Reason::kNoTransferMechanism:
      return kDate | kPlaces | kOrganisations | Only(Dim::kView);
    default:  // of a list that grows: what is not known here may be about anything
      return kEverything;
  }
}

void Explorer::Run(DecisionPoint point, const Visit& visit, DimSet fixed, const Key& start) {
  point_ = point;
  visit_ = &visit;
  fixed_ = fixed;
  key_ = start;
  transfer_ = base_;
  transfer_.point = point;
  transfer_.to.role = PartyRole::kAggregator;
  transfer_.to.id = "main";
  transfer_.to.evidence = LocationEvidence::kAttested;
  transfer_.via.reset();
  if (HasVia(point)) {
    transfer_.via = transfer_.to;
  }
  for (auto& level : denied_) {
    level.clear();
  }
  Descend(0);
}

int Explorer::Descend(std::size_t level) {
  if (level == kNumDims) {
    return Ask();
  }
  const Dim dim = static_cast<Dim>(level);
  const bool is_fixed = (fixed_ >> level) % 2 == 1;
  const std::size_t begin = is_fixed ? key_.at[level] : 0;
  const std::size_t end = is_fixed ? begin + 1 : space_.Size(point_, dim);
  for (std::size_t value = begin; value < end; ++value) {
    key_.at[level] = static_cast<std::uint16_t>(value);
    if (!space_.Fits(point_, key_, dim) || IsKnownDenied(level)) {
      continue;
    }
    space_.Apply(point_, dim, key_, transfer_);
    const int back = Descend(level + 1);
    if (back < static_cast<int>(level)) {
      key_.at[level] = static_cast<std::uint16_t>(begin);
      return back;
    }
  }
  key_.at[level] = static_cast<std::uint16_t>(begin);
  return static_cast<int>(level) - 1;
}

int Explorer::Ask() {
  ++decisions_;
  const Decision decision = Decide(effective_, transfer_);
  if (decision.result == Result::kDeny) {
    return Learn(decision);
  }
  return LevelOf((*visit_)(key_, transfer_, decision));
}

int Explorer::Learn(const Decision& denied) {
  int back = static_cast<int>(Dim::kKind);
  for (const Finding& finding : denied.findings) {
    const DimSet dims = DependsOn(finding.reason);
    if (dims == 0) {
      return kStopAll;
    }
    const int last = std::bit_width(dims) - 1;
    back = std::min(back, last);
    if (dims == kEverything) {
      continue;  // about this request only
    }
    std::vector<Denied>& level = denied_.at(static_cast<std::size_t>(last));
    auto same = std::find_if(level.begin(), level.end(),
                             [dims](const Denied& each) { return each.dims == dims; });
    if (same == level.end()) {
      same = level.insert(level.end(), {dims, {}});
    }
    same->keys.insert(Restrict(key_, dims));
  }
  return back;
}

bool Explorer::IsKnownDenied(std::size_t level) const {
  return std::any_of(denied_[level].begin(), denied_[level].end(), [this](const Denied& each) {
    return each.keys.contains(Restrict(key_, each.dims));
  });
}

}  // namespace domicile::policy::analysis::internal
