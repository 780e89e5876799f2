#include "policy/engine/internal/standing.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "policy/engine/internal/evaluation.h"

namespace domicile::policy::internal {
namespace {

Finding Found(Reason reason, const Origin& origin, std::string what, std::string remedy) {
  return {.reason = reason,
          .origin = origin,
          .what = std::move(what),
          .remedy = std::move(remedy),
          .hand = HandOf(reason, origin)};
}

// Which roles may receive at a point.
bool FitsPoint(DecisionPoint point, PartyRole role) {
  switch (point) {
    case DecisionPoint::kNone:
      return false;
    case DecisionPoint::kOffer:
    case DecisionPoint::kDataOpen:
    case DecisionPoint::kEgress:
    case DecisionPoint::kIngress:
    case DecisionPoint::kAggregateRelease:
    case DecisionPoint::kEnrolment:
    case DecisionPoint::kParentSum:
      return role == PartyRole::kAggregator;
    case DecisionPoint::kModelToSite:
      return role == PartyRole::kSite;
    case DecisionPoint::kModelDownload:
      return role == PartyRole::kOperator || role == PartyRole::kSite;
    case DecisionPoint::kView:
      return role == PartyRole::kOperator || role == PartyRole::kAuditor;
  }
  return false;
}

bool NeedsVia(DecisionPoint point) {
  return point == DecisionPoint::kModelToSite || point == DecisionPoint::kModelDownload ||
         point == DecisionPoint::kView || point == DecisionPoint::kParentSum;
}

template <typename E>
bool IsListed(E value) {
  const auto all = AllOf<E>();
  return std::find(all.begin(), all.end(), value) != all.end();
}
// For what may be left out.
template <typename E>
bool IsListedOrUnset(E value) {
  return value == E{} || IsListed(value);
}
template <typename E>
bool IsListedIfGiven(const std::optional<E>& value) {
  return !value || IsListed(*value);
}

// A value outside its list would pass a comparison; nothing outside may.
bool HasUnknownCodes(const Transfer& transfer) {
  const auto is_bad = [](const Party& party) { return !IsListedOrUnset(party.evidence); };
  const PlanFacts& plan = transfer.plan;
  if (is_bad(transfer.from) || is_bad(transfer.to) || (transfer.via && is_bad(*transfer.via)) ||
      std::any_of(transfer.transit.begin(), transfer.transit.end(), is_bad) ||
      std::any_of(transfer.recipients.begin(), transfer.recipients.end(), is_bad)) {
    return true;
  }
  if (transfer.outputs &&
      !std::all_of(transfer.outputs->begin(), transfer.outputs->end(), IsListed<Output>)) {
    return true;
  }
  return !IsListedOrUnset(plan.dp_unit) || !IsListedOrUnset(plan.sampling) ||
         !IsListedIfGiven(transfer.sandbox_network) || !IsListedIfGiven(transfer.sandbox_profile);
}

std::string FindMalformedContent(const Transfer& transfer) {
  if (transfer.dataset.IsNone()) {
    return "the dataset is not named";
  }
  if (transfer.kinds.empty() ||
      !std::all_of(transfer.kinds.begin(), transfer.kinds.end(), IsListed<UpdateKind>)) {
    return "the kinds of numbers are not named";
  }
  if (!IsListed(transfer.purpose)) {
    return "the purpose is not named";
  }
  if (!IsListed(transfer.view)) {
    return "what the receiver can see is not named";
  }
  if (!IsListed(transfer.plan.weights) || !IsListed(transfer.plan.dp_mode)) {
    return "a plan fact is not set";
  }
  return "";
}

// What is wrong with the request itself; empty if nothing is.
std::string FindMalformed(const Transfer& transfer) {
  if (transfer.point == DecisionPoint::kNone) {
    return "the decision point is not named";
  }
  if (transfer.from.role != PartyRole::kSite) {
    return "`from` must be the site whose records are behind it";
  }
  if (!FitsPoint(transfer.point, transfer.to.role)) {
    return "the receiver's role does not fit the decision point";
  }
  if (NeedsVia(transfer.point) != transfer.via.has_value()) {
    return "`via`, the aggregator that holds the bytes, must be named at this point and only there";
  }
  if (transfer.via && transfer.via->role != PartyRole::kAggregator) {
    return "`via` must be an aggregator";
  }
  if (HasUnknownCodes(transfer)) {
    return "a fact has a value that is in no list";
  }
  if (transfer.point == DecisionPoint::kEnrolment) {
    return transfer.dataset.IsNone() ? "" : "no dataset is named at enrolment";
  }
  return FindMalformedContent(transfer);
}

std::optional<Finding> FindOutOfTime(const Effective::Source& source, WallTime now) {
  const Origin origin = {source.source, source.id, "[policy]", source.file, 0};
  if (now >= source.expires) {
    const bool is_grant = source.source == PolicySource::kGrant;
    return Found(is_grant ? Reason::kGrantExpired : Reason::kPolicyExpired, origin,
                 std::string(is_grant ? "grant" : "policy") + " `" + source.id + "` expired at " +
                     PrintTime(source.expires),
                 is_grant ? "approve the job again" : "issue a new version of `" + source.id + "`");
  }
  if (now < source.not_before) {
    return Found(Reason::kPolicyNotYetValid, origin,
                 "policy `" + source.id + "` holds from " + PrintTime(source.not_before),
                 "wait, or check the clock");
  }
  return std::nullopt;
}

Hand HandWithoutRule(Reason reason) {
  switch (reason) {
    case Reason::kForbidden:  // by a fact: no rule is behind it
    case Reason::kFactMissing:
    case Reason::kFactExpired:
    case Reason::kNegativeList:
      return Hand::kLaw;
    case Reason::kLocation:  // unreadable, in the roster
    case Reason::kControl:
    case Reason::kMinContributors:
      return Hand::kFederation;
    case Reason::kClip:
    case Reason::kRecipient:
    case Reason::kRuleInvalid:
      return Hand::kJob;
    case Reason::kDatasetUnknown:
    case Reason::kMinCohort:
    case Reason::kSandboxMissing:
    case Reason::kPolicyUnsatisfiable:
      return Hand::kSite;
    default:  // of the closed list, nothing else comes without a rule
      return Hand::kNobody;
  }
}

}  // namespace

Hand HandOf(Reason reason, const Origin& origin) {
  switch (origin.source) {
    case PolicySource::kNone:
      return HandWithoutRule(reason);
    case PolicySource::kFederation:
      return Hand::kFederation;
    case PolicySource::kAggregator:
      return Hand::kAggregator;
    case PolicySource::kSite:
    case PolicySource::kGrant:
      return Hand::kSite;
  }
  return Hand::kNobody;
}

std::optional<Finding> FindStanding(const Effective& effective, const Transfer& transfer) {
  std::string malformed = FindMalformed(transfer);
  if (!malformed.empty()) {
    return Found(Reason::kRuleInvalid, {}, std::move(malformed),
                 "ask again with a complete request");
  }
  const std::string& facts = effective.LegalFacts().digest;
  for (const Effective::Source& source : effective.Sources()) {
    if (std::optional<Finding> found = FindOutOfTime(source, transfer.now)) {
      return found;
    }
    if (!source.legal_facts.empty() && source.legal_facts != facts) {
      return Found(Reason::kLegalFactsDigest,
                   {source.source, source.id, "[policy]", source.file, 0},
                   "policy `" + source.id +
                       "` was written for other legal facts than those in "
                       "force",
                   "put the legal facts with the digest it names in force, or have the policy "
                   "reviewed for these");
    }
  }
  for (const auto& clause : effective.SiteJurisdictions()) {
    if (clause.value != transfer.from.jurisdiction) {
      return Found(Reason::kJurisdictionMismatch, clause.origin,
                   "the site is at " + ShowPlace(transfer.from.jurisdiction) +
                       ", its policy says `" + clause.value + "`",
                   "certificate, roster and site policy must name the same place");
    }
  }
  return std::nullopt;
}

std::optional<Finding> FindUndescribed(const Transfer& transfer, const ReadyTerms* ready) {
  const auto name = [&transfer] { return "dataset `" + transfer.dataset.text() + "`"; };
  if (ready == nullptr) {
    return Found(Reason::kDatasetUnknown, {}, "no site policy describes " + name(),
                 "describe it in the site policy");
  }
  if (!ready->terms.no_rule.empty()) {
    return Found(Reason::kNoRuleMatched, *ready->terms.no_rule.begin(),
                 "no rule speaks for " + name(), "add a [[rule]] for it to the site policy");
  }
  return std::nullopt;
}

}  // namespace domicile::policy::internal
