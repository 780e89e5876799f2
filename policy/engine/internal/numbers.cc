// The numbers of a plan, of an update, of the contributors behind a sum.
#include <algorithm>
#include <cmath>

#include "policy/engine/fold.h"
#include "policy/engine/internal/bounds.h"

namespace domicile::policy::internal {
namespace {

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

bool Evaluation::HasDelta() const {
  return std::any_of(transfer_.kinds.begin(), transfer_.kinds.end(), IsDelta);
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
              "no program adds noise yet: the plan's differential privacy is",
              "require.privacy.dp_mode");
  // With a quorum below the minimum the floor of a phase is raised; with a cap below it, nothing
  // could ever be released.
  WantAtLeast(terms_.min_contributors, std::uint64_t{plan.max_sites}, Reason::kMinContributors,
              "the plan admits sites:", "require.privacy.min_contributors");
  if (plan.batch != 0) {
    WantAtLeast(terms_.min_batch, plan.batch, Reason::kBatch, "the plan's batch is",
                "require.privacy.min_batch");
  } else if (transfer_.records_behind && HasDelta()) {
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
    // How many records there are is not told before there are numbers; what has left already is.
    if (IsContribution() && transfer_.released_per_record > 0) {
      CheckReleased(0, 1);
    }
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
  if (IsContribution() && HasDelta()) {
    WantAtMost(terms_.params_per_record,
               static_cast<double>(plan.parameters) / static_cast<double>(records),
               Reason::kLimitReleasedNumbers,
               "parameters for each record:", "limit.params_per_record");
  }
}

std::optional<std::uint64_t> Evaluation::CountContributors() {
  if (!transfer_.contributors || terms_.contributors.empty()) {
    return transfer_.contributors;
  }
  std::set<std::string_view> organisations;
  for (const Contributor& contributor : transfer_.contributor_sites) {
    const bool counts = std::all_of(
        terms_.contributors.begin(), terms_.contributors.end(),
        [&contributor](const auto& clause) { return clause.value.contains(contributor.site); });
    if (counts && !contributor.organisation.empty()) {
      organisations.insert(contributor.organisation);
    }
  }
  for (const auto& clause : terms_.contributors) {
    Bear(clause);
  }
  return std::min<std::uint64_t>(*transfer_.contributors, organisations.size());
}

void Evaluation::CheckContributors() {
  const bool is_wanted =
      transfer_.point == DecisionPoint::kAggregateRelease ||
      transfer_.point == DecisionPoint::kParentSum || IsModel() ||
      (transfer_.point == DecisionPoint::kView && transfer_.view == View::kAggregateOnly);
  if (!is_wanted) {
    return;
  }
  const std::optional<std::uint64_t> contributors = CountContributors();
  if (!contributors) {
    Deny(Reason::kMinContributors, {}, "it is not known how many organisations contributed",
         "the aggregator must count them by the roster");
    return;
  }
  WantAtLeast(terms_.min_contributors, *contributors, Reason::kMinContributors,
              terms_.contributors.empty()
                  ? "organisations behind the sum:"
                  : "organisations behind the sum that allow.contributors counts:",
              "require.privacy.min_contributors");
}

}  // namespace domicile::policy::internal
