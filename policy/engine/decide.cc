#include "policy/engine/decide.h"

#include <algorithm>

#include "policy/engine/fold.h"
#include "policy/engine/internal/evaluation.h"
#include "policy/engine/internal/standing.h"

namespace domicile::policy {

namespace {

using internal::Detail;
using internal::Evaluation;

constexpr std::uint64_t kRoundTo = 5;

Decision DenyWith(Finding finding) {
  Decision decision;
  if (!finding.origin.policy.empty()) {
    decision.rules.push_back(finding.origin);
  }
  decision.findings.push_back(std::move(finding));
  return decision;
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
  obligations.audit_min = Greatest(terms.audit_min);
  obligations.update_max = Least(terms.update_max);
  obligations.model_review = Least(terms.model_review);
  obligations.on_withdrawal = Greatest(terms.on_withdrawal).value_or(ErasureRule::kUnset);
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

using Check = void (Evaluation::*)();

// What is asked at every border of a dataset's numbers, in order of weight.
constexpr Check kChecks[] = {
    &Evaluation::CheckDenyRules,  &Evaluation::CheckReceiver,  &Evaluation::CheckTransit,
    &Evaluation::CheckRecipients, &Evaluation::CheckEvidence,  &Evaluation::CheckContent,
    &Evaluation::CheckBorders,    &Evaluation::CheckDocuments, &Evaluation::CheckPayload,
    &Evaluation::CheckPlan,       &Evaluation::CheckPrivacy,   &Evaluation::CheckContributors,
    &Evaluation::CheckSite,       &Evaluation::CheckPeer};

// What is asked before there is a job.
constexpr Check kEnrolmentChecks[] = {&Evaluation::CheckDenyRules, &Evaluation::CheckReceiver,
                                      &Evaluation::CheckTransit, &Evaluation::CheckEvidence,
                                      &Evaluation::CheckPeer};

template <std::size_t N>
void Run(const Check (&checks)[N], Evaluation& evaluation, Detail detail) {
  for (const Check check : checks) {
    (evaluation.*check)();
    if (detail == Detail::kAnswer && evaluation.IsDenied()) {
      return;
    }
  }
}

// The part of a decision that an evaluation found.
Decision Gather(const Evaluation& evaluation) {
  Decision decision;
  decision.findings = evaluation.Findings();
  std::stable_sort(
      decision.findings.begin(), decision.findings.end(),
      [](const Finding& a, const Finding& b) { return Weight(a.reason) < Weight(b.reason); });
  decision.facts = evaluation.UsedFacts();
  decision.crossings = evaluation.Crossings();
  const std::set<Origin> rules = evaluation.Rules();
  decision.rules.assign(rules.begin(), rules.end());
  return decision;
}

void Permitted(const Terms& terms, Decision& decision) {
  decision.result = Result::kAllow;
  decision.findings = {{.reason = Reason::kPermitted,
                        .origin = PermittingRule(terms),
                        .what = "every rule allows it",
                        .remedy = "",
                        .hand = Hand::kNobody}};
}

Decision JudgeDataset(const Effective& effective, const Transfer& transfer, Detail detail) {
  const std::shared_ptr<const ReadyTerms> ready = effective.Ready(transfer.dataset);
  if (std::optional<Finding> denied = internal::FindUndescribed(transfer, ready.get())) {
    return DenyWith(*std::move(denied));
  }
  Evaluation evaluation(effective, *ready, transfer, detail);
  for (const std::string& conflict : ready->conflicts) {
    evaluation.Deny(Reason::kPolicyUnsatisfiable, {}, conflict, "change one of the two");
  }
  Run(kChecks, evaluation, detail);
  std::vector<Finding> missing;
  if (!evaluation.IsDenied() && evaluation.IsSitePoint()) {
    missing = evaluation.FindMissingApprovals();
  }
  if (detail == Detail::kAnswer) {
    Decision answer;
    answer.result = evaluation.IsDenied() ? Result::kDeny
                    : missing.empty()     ? Result::kAllow
                                          : Result::kHold;
    return answer;
  }
  Decision decision = Gather(evaluation);
  if (!missing.empty()) {
    decision.result = Result::kHold;
    decision.findings = std::move(missing);
  } else if (!evaluation.IsDenied()) {
    Permitted(ready->terms, decision);
    decision.obligations = ObligationsOf(ready->terms, transfer);
  }
  return decision;
}

// Before there is a job: one dataset that the two may speak about is enough.
Decision JudgeEnrolment(const Effective& effective, const Transfer& transfer, Detail detail) {
  std::optional<Decision> first;
  for (const DatasetAlias& alias : effective.Datasets()) {
    const std::shared_ptr<const ReadyTerms> ready = effective.Ready(alias);
    Evaluation evaluation(effective, *ready, transfer, detail);
    if (!ready->terms.no_rule.empty()) {
      evaluation.Deny(Reason::kNoRuleMatched, *ready->terms.no_rule.begin(),
                      "no rule speaks for dataset `" + alias.text() + "`",
                      "add a [[rule]] for it to the site policy");
    }
    Run(kEnrolmentChecks, evaluation, detail);
    if (!evaluation.IsDenied()) {
      Decision decision = Gather(evaluation);
      Permitted(ready->terms, decision);
      return decision;
    }
    if (!first) {
      first = Gather(evaluation);
    }
  }
  return first ? *std::move(first)
               : DenyWith({.reason = Reason::kDatasetUnknown,
                           .origin = {},
                           .what = "the site describes no dataset",
                           .remedy = "describe one in the site policy",
                           .hand = Hand::kSite});
}

Decision Judge(const Effective& effective, const Transfer& transfer, Detail detail) {
  if (std::optional<Finding> denied = internal::FindStanding(effective, transfer)) {
    return DenyWith(*std::move(denied));
  }
  return transfer.point == DecisionPoint::kEnrolment ? JudgeEnrolment(effective, transfer, detail)
                                                     : JudgeDataset(effective, transfer, detail);
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

std::string_view Code(Hand hand) {
  switch (hand) {
    case Hand::kNobody:
      return "nobody";
    case Hand::kSite:
      return "site";
    case Hand::kAggregator:
      return "aggregator";
    case Hand::kFederation:
      return "federation";
    case Hand::kJob:
      return "job";
    case Hand::kLaw:
      return "law";
  }
  return "nobody";
}

Decision Decide(const Effective& effective, const Transfer& transfer) {
  Decision decision = Judge(effective, transfer, Detail::kReasons);
  if (decision.result == Result::kAllow) {
    decision.permit = Permit(transfer);
  }
  return decision;
}

Decision Simulate(const Effective& effective, const Transfer& transfer) {
  Decision decision = Judge(effective, transfer, Detail::kReasons);
  decision.simulated = true;
  return decision;
}

Result Answer(const Effective& effective, const Transfer& transfer) {
  return Judge(effective, transfer, Detail::kAnswer).result;
}

}  // namespace domicile::policy
