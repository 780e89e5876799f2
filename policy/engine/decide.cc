#include "policy/engine/decide.h"

#include <algorithm>
#include <cmath>

#include "policy/engine/fold.h"
#include "policy/engine/internal/evaluation.h"

namespace domicile::policy {
namespace internal {

void Evaluation::Deny(Reason reason, const Origin& origin, std::string what, std::string remedy) {
  if (!origin.policy.empty()) {
    rules_.insert(origin);
  }
  findings_.push_back({reason, origin, std::move(what), std::move(remedy)});
}

bool Evaluation::IsSitePoint() const {
  switch (transfer_.point) {
    case DecisionPoint::kOffer:
    case DecisionPoint::kDataOpen:
    case DecisionPoint::kEgress:
      return true;
    case DecisionPoint::kNone:
    case DecisionPoint::kIngress:
    case DecisionPoint::kAggregateRelease:
    case DecisionPoint::kModelToSite:
    case DecisionPoint::kModelDownload:
    case DecisionPoint::kView:
    case DecisionPoint::kEnrolment:
    case DecisionPoint::kParentSum:
      return false;
  }
  return false;
}

bool Evaluation::IsContribution() const {
  return IsSitePoint() || transfer_.point == DecisionPoint::kIngress;
}

bool Evaluation::IsModel() const {
  return transfer_.point == DecisionPoint::kModelToSite ||
         transfer_.point == DecisionPoint::kModelDownload;
}

}  // namespace internal

namespace {

constexpr std::uint64_t kRoundTo = 5;

Decision DenyWith(Reason reason, const Origin& origin, std::string what, std::string remedy) {
  Decision decision;
  decision.findings.push_back({reason, origin, std::move(what), std::move(remedy)});
  if (!origin.policy.empty()) {
    decision.rules.push_back(origin);
  }
  return decision;
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

// What is wrong with the request itself; empty if nothing is.
std::string FindMalformed(const Transfer& transfer) {
  if (transfer.point == DecisionPoint::kNone) {
    return "the decision point is not named";
  }
  if (transfer.dataset.IsNone()) {
    return "the dataset is not named";
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
  if (transfer.kinds.empty() || std::find(transfer.kinds.begin(), transfer.kinds.end(),
                                          UpdateKind::kNone) != transfer.kinds.end()) {
    return "the kinds of numbers are not named";
  }
  if (transfer.purpose == Purpose::kNone) {
    return "the purpose is not named";
  }
  if (transfer.view == View::kNone) {
    return "what the receiver can see is not named";
  }
  if (transfer.plan.weights == WeightRule::kUnset || transfer.plan.dp_mode == DpMode::kUnset ||
      transfer.sandbox_network == SandboxNetwork::kUnset) {
    return "a plan fact is not set";
  }
  return "";
}

// The first thing that denies whatever the rules say.
std::optional<Decision> CheckStanding(const Effective& effective, const Transfer& transfer) {
  const std::string malformed = FindMalformed(transfer);
  if (!malformed.empty()) {
    return DenyWith(Reason::kRuleInvalid, {}, malformed, "ask again with a complete request");
  }
  for (const Effective::Source& source : effective.Sources()) {
    const Origin origin = {source.source, source.id, "[policy]", source.file, 0};
    if (transfer.now >= source.expires) {
      return DenyWith(Reason::kPolicyExpired, origin,
                      "policy `" + source.id + "` expired at " + PrintTime(source.expires),
                      "issue a new version of `" + source.id + "`");
    }
    if (transfer.now < source.not_before) {
      return DenyWith(Reason::kPolicyNotYetValid, origin,
                      "policy `" + source.id + "` holds from " + PrintTime(source.not_before),
                      "wait, or check the clock");
    }
  }
  for (const auto& clause : effective.SiteJurisdictions()) {
    if (clause.value != transfer.from.jurisdiction) {
      return DenyWith(Reason::kJurisdictionMismatch, clause.origin,
                      "the site is at " + internal::ShowPlace(transfer.from.jurisdiction) +
                          ", its policy says `" + clause.value + "`",
                      "certificate, roster and site policy must name the same place");
    }
  }
  return std::nullopt;
}

std::optional<Decision> CheckDataset(const Transfer& transfer, const std::optional<Terms>& terms) {
  const std::string name = "dataset `" + transfer.dataset.text() + "`";
  if (!terms) {
    return DenyWith(Reason::kDatasetUnknown, {}, "no site policy describes " + name,
                    "describe it in the site policy");
  }
  if (!terms->no_rule.empty()) {
    return DenyWith(Reason::kNoRuleMatched, *terms->no_rule.begin(), "no rule speaks for " + name,
                    "add a [[rule]] for it to the site policy");
  }
  return std::nullopt;
}

// The weightiest reason first: what forbids, then what cannot be mended by a smaller request.
int Weight(Reason reason) {
  switch (reason) {
    case Reason::kPolicyUnsatisfiable:
      return 0;
    case Reason::kForbidden:
      return 1;
    default:  // of the closed list, only these two go before the rest
      return 2;
  }
}

std::vector<Finding> FindMissingApprovals(const Terms& terms, const Transfer& transfer) {
  std::vector<Finding> missing;
  for (const auto& clause : terms.approvals) {
    for (const auto& [role, count] : clause.value) {
      std::uint32_t present = 0;
      for (const PresentApproval& approval : transfer.approvals) {
        present = approval.role == role ? std::max(present, approval.count) : present;
      }
      if (present < count) {
        missing.push_back({Reason::kApprovalMissing, clause.origin,
                           "approvals by `" + std::string(Code(role)) +
                               "`: " + std::to_string(present) + " of " + std::to_string(count),
                           "have the job approved by that role"});
      }
    }
  }
  return missing;
}

Obligations ObligationsOf(const Terms& terms, const Transfer& transfer) {
  Obligations obligations;
  const double clip = Least(terms.clip_l2).value_or(transfer.plan.clip_l2);
  obligations.clip_l2 = std::min(clip, transfer.plan.clip_l2);
  obligations.min_contributors =
      static_cast<std::uint32_t>(Greatest(terms.min_contributors).value_or(0));
  obligations.min_cohort = Greatest(terms.min_cohort).value_or(0);
  obligations.weights =
      std::min(transfer.plan.weights, Least(terms.weights).value_or(WeightRule::kEqual));
  obligations.round_to = obligations.weights == WeightRule::kExact ? 1 : kRoundTo;
  obligations.scale_bits = transfer.plan.scale_bits;
  return obligations;
}

Origin PermittingRule(const Terms& terms) {
  for (const auto& clause : terms.update_kinds) {
    if (clause.origin.source == PolicySource::kSite) {
      return clause.origin;
    }
  }
  return {};
}

void RunChecks(internal::Evaluation& evaluation) {
  evaluation.CheckDenyRules();
  evaluation.CheckReceiver();
  evaluation.CheckRecipients();
  evaluation.CheckContent();
  evaluation.CheckBorders();
  evaluation.CheckDocuments();
  evaluation.CheckPayload();
  evaluation.CheckPlan();
  evaluation.CheckContributors();
  evaluation.CheckSite();
}

}  // namespace

std::string_view Code(Result result) {
  switch (result) {
    case Result::kDeny:
      return "deny";
    case Result::kHold:
      return "hold";
    case Result::kAllow:
      return "allow";
  }
  return "deny";
}

Decision Decide(const Effective& effective, const Transfer& transfer) {
  if (auto denied = CheckStanding(effective, transfer)) {
    return *std::move(denied);
  }
  const std::optional<Terms> terms = effective.Find(transfer.dataset);
  if (auto denied = CheckDataset(transfer, terms)) {
    return *std::move(denied);
  }
  internal::Evaluation evaluation(effective, *terms, transfer);
  for (const std::string& conflict : effective.Conflicts(transfer.dataset)) {
    evaluation.Deny(Reason::kPolicyUnsatisfiable, {}, conflict, "change one of the two");
  }
  RunChecks(evaluation);

  Decision decision;
  decision.findings = evaluation.Findings();
  std::stable_sort(
      decision.findings.begin(), decision.findings.end(),
      [](const Finding& a, const Finding& b) { return Weight(a.reason) < Weight(b.reason); });
  decision.facts.assign(evaluation.UsedFacts().begin(), evaluation.UsedFacts().end());
  std::set<Origin> rules = evaluation.Rules();
  if (decision.findings.empty() && evaluation.IsSitePoint()) {
    decision.findings = FindMissingApprovals(*terms, transfer);
    for (const auto& clause : terms->approvals) {
      rules.insert(clause.origin);
    }
    if (!decision.findings.empty()) {
      decision.result = Result::kHold;
    }
  }
  decision.rules.assign(rules.begin(), rules.end());
  if (decision.findings.empty()) {
    decision.result = Result::kAllow;
    decision.findings.push_back(
        {Reason::kPermitted, PermittingRule(*terms), "every rule allows it", ""});
    decision.obligations = ObligationsOf(*terms, transfer);
    decision.permit = Permit(transfer);
  }
  return decision;
}

}  // namespace domicile::policy
