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

// The dimension that is fixed last.
std::size_t LastOf(DimSet dims) {
  return dims == 0 ? 0 : static_cast<std::size_t>(std::bit_width(dims)) - 1;
}

// A request at a point, with parties whose places are still to be set.
Transfer Frame(const Transfer& base, DecisionPoint point) {
  Transfer transfer = base;
  transfer.point = point;
  transfer.to.role = PartyRole::kAggregator;
  transfer.to.id = "main";
  transfer.to.evidence = LocationEvidence::kAttested;
  transfer.via.reset();
  transfer.recipients.clear();
  if (HasVia(point)) {
    transfer.via = transfer.to;
  } else if (HasSecond(point)) {
    transfer.recipients.push_back(transfer.to);
  }
  return transfer;
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
    case Reason::kLegalFactsDigest:
      return kDate;
    case Reason::kPurpose:
    case Reason::kPurposeProhibited:
      return Only(Dim::kPurpose);
    case Reason::kUpdateKind:
      return Only(Dim::kKind);
    case Reason::kView:
    case Reason::kSecureAggregationRequired:
      return Only(Dim::kView);
    case Reason::kRecipient:
      return Only(Dim::kWho);
    case Reason::kLocation:
    case Reason::kNegativeList:
      return kDate | kPlaces;
    case Reason::kControl:
      return kDate | kControls;
    case Reason::kForbidden:
      return kDate | kPlaces | kControls | Only(Dim::kWho) | Only(Dim::kKind);
    case Reason::kEdpbUseCase6:
    case Reason::kEdpbUseCase7:
    case Reason::kNoTransferMechanism:
    case Reason::kDerogation:
    case Reason::kDocumentMissing:
    case Reason::kDocumentExpired:
    case Reason::kSubjectsThreshold:
      return kDate | kPlaces | kOrganisations | Only(Dim::kWho) | Only(Dim::kView);
    case Reason::kFactMissing:
    case Reason::kFactExpired:
      return kDate | kPlaces | kControls | kOrganisations | Only(Dim::kWho) | Only(Dim::kView);
    // Numbers and what the site itself has: the same in every request of the space, but that some
    // are asked of deltas only, or of a view.
    case Reason::kMinContributors:
    case Reason::kMinCohort:
    case Reason::kLocalSteps:
    case Reason::kBatch:
    case Reason::kLimitRounds:
    case Reason::kLimitRuns:
    case Reason::kLimitBytes:
    case Reason::kLimitReleasedNumbers:
    case Reason::kLimitMetrics:
    case Reason::kLimitEpsilon:
    case Reason::kPrivacyRequired:
    case Reason::kSandboxMissing:
    case Reason::kOutputForbidden:
      return Only(Dim::kView) | Only(Dim::kKind);
    default:  // of a list that grows: what is not known here may be about anything
      return kEverything;
  }
}

Transfer Explorer::Request(DecisionPoint point, const Key& key) const {
  Transfer transfer = Frame(base_, point);
  for (std::size_t i = 0; i < kNumDims; ++i) {
    space_.Apply(point, static_cast<Dim>(i), key, transfer);
  }
  return transfer;
}

void Explorer::Run(DecisionPoint point, const Visit& visit, const Part& part) {
  point_ = point;
  visit_ = &visit;
  part_ = &part;
  key_ = part.start;
  transfer_ = Frame(base_, point);
  for (std::size_t i = 0; i < kNumDims; ++i) {
    denied_.at(i).clear();
    known_.at(i).clear();
  }
  for (const Denial* denial : part.known.denials) {
    known_.at(LastOf(denial->dims)).push_back(denial);
  }
  Descend(0);
}

int Explorer::Descend(std::size_t level) {
  if (level == kNumDims) {
    return Ask();
  }
  const Dim dim = static_cast<Dim>(level);
  const bool is_fixed = (part_->fixed >> level) % 2 == 1;
  const std::size_t begin = is_fixed ? key_.at[level] : 0;
  const std::size_t end = is_fixed ? begin + 1 : space_.Size(point_, dim);
  for (std::size_t value = begin; value < end; ++value) {
    key_.at[level] = static_cast<std::uint16_t>(value);
    const bool skip = !space_.Fits(point_, key_, dim) ||
                      (part_->wanted && !part_->wanted(key_, dim)) || IsKnownDenied(level);
    if (skip) {
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
  const Result result = Answer(effective_, transfer_);
  return result == Result::kDeny ? Learn(Simulate(effective_, transfer_))
                                 : LevelOf((*visit_)(key_, transfer_, result));
}

int Explorer::Learn(const Decision& denied) {
  int back = static_cast<int>(Dim::kKind);
  for (const Finding& finding : denied.findings) {
    const DimSet dims = DependsOn(finding.reason);
    Record(finding, dims);
    if (dims == 0) {
      back = kStopAll;
      continue;
    }
    const std::size_t last = LastOf(dims);
    back = std::min(back, static_cast<int>(last));
    if (dims == kEverything) {
      continue;  // about this request only
    }
    std::vector<Denied>& level = denied_.at(last);
    auto same = std::find_if(level.begin(), level.end(),
                             [dims](const Denied& each) { return each.dims == dims; });
    if (same == level.end()) {
      same = level.insert(level.end(), {dims, {}});
    }
    same->keys.insert(Restrict(key_, dims));
  }
  return back;
}

void Explorer::Record(const Finding& finding, DimSet dims) const {
  if (part_->known.learned == nullptr) {
    return;
  }
  std::vector<Denial>& learned = *part_->known.learned;
  auto same = std::find_if(learned.begin(), learned.end(), [&finding](const Denial& each) {
    return each.reason == finding.reason && each.origin == finding.origin;
  });
  if (same == learned.end()) {
    same = learned.insert(learned.end(), {dims, finding.reason, finding.origin, {}});
  }
  same->keys.insert(Restrict(key_, dims));
}

bool Explorer::IsKnownDenied(std::size_t level) const {
  return std::any_of(denied_[level].begin(), denied_[level].end(),
                     [this](const Denied& each) {
                       return each.keys.contains(Restrict(key_, each.dims));
                     }) ||
         std::any_of(known_[level].begin(), known_[level].end(), [this](const Denial* each) {
           return each->keys.contains(Restrict(key_, each->dims));
         });
}

}  // namespace domicile::policy::analysis::internal
