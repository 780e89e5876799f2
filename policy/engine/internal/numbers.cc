// Kinds, view, purpose, and everything that is a number.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "policy/engine/fold.h"
#include "policy/engine/internal/evaluation.h"

namespace domicile::policy::internal {
namespace {

std::string Print(std::uint64_t value) { return std::to_string(value); }
std::string Print(double value) { return PrintDouble(value); }
std::string Print(SandboxNetwork value) { return "`" + std::string(Code(value)) + "`"; }
std::string Print(View value) { return "`" + std::string(Code(value)) + "`"; }
std::string Print(DpMode value) { return "`" + std::string(Code(value)) + "`"; }

bool IsDelta(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kDeltaMasked:
    case UpdateKind::kDeltaClippedNoised:
    case UpdateKind::kDeltaPlain:
    case UpdateKind::kGradient:
      return true;
    case UpdateKind::kNone:
    case UpdateKind::kMetricsAggregate:
    case UpdateKind::kModelFinal:
    case UpdateKind::kStatisticsTable:
      return false;
  }
  return false;
}

}  // namespace

template <typename T>
void Evaluation::WantAtMost(const Clauses<T>& clauses, T value, Reason reason,
                            const std::string& what, std::string_view key) {
  for (const auto& clause : clauses) {
    Bear(clause.origin);
    if (!(value <= clause.value)) {
      Deny(reason, clause.origin,
           what + " " + Print(value) + ", more than " + std::string(key) + " = " +
               Print(clause.value),
           "ask for at most " + Print(clause.value) + ", or raise " + std::string(key) + " in " +
               policy::Print(clause.origin));
    }
  }
}

template <typename T>
void Evaluation::WantAtLeast(const Clauses<T>& clauses, T value, Reason reason,
                             const std::string& what, std::string_view key) {
  for (const auto& clause : clauses) {
    Bear(clause.origin);
    if (!(value >= clause.value)) {
      Deny(reason, clause.origin,
           what + " " + Print(value) + ", less than " + std::string(key) + " = " +
               Print(clause.value),
           "give at least " + Print(clause.value) + ", or lower " + std::string(key) + " in " +
               policy::Print(clause.origin));
    }
  }
}

void Evaluation::CheckKinds() {
  for (const UpdateKind kind : transfer_.kinds) {
    const std::string name(Code(kind));
    for (const auto& clause : terms_.update_kinds) {
      Bear(clause.origin);
      if (!clause.value.contains(kind)) {
        Deny(Reason::kUpdateKind, clause.origin, "`" + name + "` is not in allow.update_kinds",
             "add `" + name + "` to allow.update_kinds in " + policy::Print(clause.origin));
      }
    }
  }
}

void Evaluation::CheckView() {
  if (IsModel()) {
    return;  // a model is an aggregate: CheckContributors sees to that
  }
  WantAtMost(terms_.aggregator_view, transfer_.view, Reason::kView, "the receiver would see",
             "allow.aggregator_view");
  if (transfer_.view == View::kAggregateOnly || transfer_.view == View::kMaskedIndividual) {
    return;
  }
  for (const auto& clause : terms_.require_secagg) {
    Bear(clause.origin);
    if (clause.value) {
      Deny(Reason::kSecureAggregationRequired, clause.origin,
           "single contributions would be readable, and require_secagg is set",
           "use secure aggregation, or write require_secagg = false in " +
               policy::Print(clause.origin));
    }
  }
}

void Evaluation::CheckContent() {
  CheckKinds();
  for (const auto& clause : terms_.purposes) {
    Bear(clause.origin);
    if (!clause.value.contains(transfer_.purpose)) {
      Deny(Reason::kPurpose, clause.origin,
           "`" + std::string(Code(transfer_.purpose)) + "` is not an allowed purpose",
           "add it to the purposes in " + policy::Print(clause.origin) +
               ", if the law and the consent allow");
    }
  }
  CheckView();
}

void Evaluation::CheckPlan() {
  if (!IsContribution()) {
    return;
  }
  const PlanFacts& plan = transfer_.plan;
  if (!std::isfinite(plan.clip_l2) || plan.clip_l2 <= 0) {
    Deny(Reason::kClip, {}, "the plan names no clip norm", "set update.clip_l2 in the job file");
  }
  WantAtMost(terms_.rounds, plan.rounds, Reason::kLimitRounds,
             "the plan has rounds:", "limit.rounds");
  WantAtMost(terms_.metrics, plan.metrics_per_round, Reason::kLimitMetrics,
             "the plan sends metrics a round:", "limit.metrics");
  WantAtLeast(terms_.min_local_steps, plan.local_steps, Reason::kLocalSteps,
              "the plan trains local steps:", "require.privacy.min_local_steps");
  WantAtLeast(terms_.dp_mode, plan.dp_mode, Reason::kPrivacyRequired,
              "the plan's differential privacy is", "require.privacy.dp_mode");
  // With a quorum below the minimum the floor of a phase is raised; with a cap below it, nothing
  // could ever be released.
  WantAtLeast(terms_.min_contributors, std::uint64_t{plan.max_sites}, Reason::kMinContributors,
              "the plan admits sites:", "require.privacy.min_contributors");
  const bool has_delta = std::any_of(transfer_.kinds.begin(), transfer_.kinds.end(), IsDelta);
  if (plan.batch != 0) {
    WantAtLeast(terms_.min_batch, plan.batch, Reason::kBatch, "the plan's batch is",
                "require.privacy.min_batch");
  } else if (transfer_.records_behind && has_delta) {
    WantAtLeast(terms_.min_batch, *transfer_.records_behind, Reason::kBatch,
                "the batch is all the records:", "require.privacy.min_batch");
  }
}

void Evaluation::CheckReleased(double numbers, std::uint64_t records) {
  const double ratio = numbers / static_cast<double>(records);
  const double total = transfer_.released_per_record + ratio;
  if (!std::isfinite(transfer_.released_per_record) || transfer_.released_per_record < 0) {
    Deny(Reason::kRuleInvalid, {}, "the ledger's sum is not a number",
         "the ledger must be read before anything leaves");
    return;
  }
  WantAtMost(terms_.released_numbers_per_record, total, Reason::kLimitReleasedNumbers,
             "numbers released for each record, with this, would be",
             "limit.released_numbers_per_record");
}

void Evaluation::CheckPayload() {
  const bool is_payload =
      transfer_.point == DecisionPoint::kEgress || transfer_.point == DecisionPoint::kIngress;
  if (transfer_.point == DecisionPoint::kEgress && !transfer_.records_behind) {
    Deny(Reason::kMinCohort, {}, "it is not known how many records stand behind the numbers",
         "the trainer must declare the count");
  }
  if (is_payload) {
    WantAtMost(terms_.update_bytes, transfer_.bytes, Reason::kLimitBytes,
               "the update has bytes:", "limit.update_bytes");
    WantAtMost(terms_.metrics, transfer_.metrics, Reason::kLimitMetrics,
               "the update carries metrics:", "limit.metrics");
  }
  if (!transfer_.records_behind || IsModel()) {
    return;
  }
  const std::uint64_t records = *transfer_.records_behind;
  WantAtLeast(terms_.min_cohort, records, Reason::kMinCohort,
              "records behind the numbers:", "require.privacy.min_cohort");
  if (records == 0) {
    Deny(Reason::kMinCohort, {}, "no record stands behind the numbers", "send nothing");
    return;
  }
  const PlanFacts& plan = transfer_.plan;
  if (is_payload) {
    CheckReleased(static_cast<double>(transfer_.numbers), records);
  } else if (IsContribution()) {
    // Floating point: a hostile plan must not make the product wrap around.
    const double per_round =
        static_cast<double>(plan.numbers_per_round) + static_cast<double>(plan.metrics_per_round);
    CheckReleased(static_cast<double>(plan.rounds) * per_round +
                      static_cast<double>(plan.statistics_numbers) +
                      static_cast<double>(plan.evaluation_numbers),
                  records);
  }
  const bool has_delta = std::any_of(transfer_.kinds.begin(), transfer_.kinds.end(), IsDelta);
  if (IsContribution() && has_delta) {
    WantAtMost(terms_.params_per_record,
               static_cast<double>(plan.parameters) / static_cast<double>(records),
               Reason::kLimitReleasedNumbers,
               "parameters for each record:", "limit.params_per_record");
  }
}

void Evaluation::CheckContributors() {
  const bool is_wanted =
      transfer_.point == DecisionPoint::kAggregateRelease ||
      transfer_.point == DecisionPoint::kParentSum || IsModel() ||
      (transfer_.point == DecisionPoint::kView && transfer_.view == View::kAggregateOnly);
  if (!is_wanted) {
    return;
  }
  if (!transfer_.contributors) {
    Deny(Reason::kMinContributors, {}, "it is not known how many organisations contributed",
         "the aggregator must count them by the roster");
    return;
  }
  WantAtLeast(terms_.min_contributors, std::uint64_t{*transfer_.contributors},
              Reason::kMinContributors,
              "organisations behind the sum:", "require.privacy.min_contributors");
}

void Evaluation::CheckSite() {
  if (!IsSitePoint()) {
    return;
  }
  WantAtMost(terms_.runs_per_day, transfer_.runs_today, Reason::kLimitRuns,
             "runs on this dataset in 24 hours, with this:", "limit.runs_per_day");
  if (transfer_.sandbox_network) {
    WantAtMost(terms_.sandbox_network, *transfer_.sandbox_network, Reason::kSandboxMissing,
               "the trainer's sandbox has the network", "sandbox.network");
  } else if (transfer_.point != DecisionPoint::kOffer) {
    Deny(Reason::kSandboxMissing, {}, "the trainer has no sandbox",
         "run the trainer on a host that can give it one");
  }
}

}  // namespace domicile::policy::internal
