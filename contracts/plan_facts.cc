#include "contracts/plan_facts.h"

#include <optional>
#include <set>

namespace domicile::contracts {

namespace {

// What a train update tells of the model it started from: examples, loss examples, loss sum.
constexpr std::uint64_t kTrainMetrics = 3;
// An evaluation of classes also tells how many rows were right.
constexpr std::uint64_t kEvaluationMetrics = 4;

policy::PartyRole RoleOf(crypto::Role role) {
  switch (role) {
    case crypto::Role::kNone:
      return policy::PartyRole::kNone;
    case crypto::Role::kSite:
      return policy::PartyRole::kSite;
    case crypto::Role::kAggregator:
      return policy::PartyRole::kAggregator;
    case crypto::Role::kOperator:
      return policy::PartyRole::kOperator;
    case crypto::Role::kAuditor:
      return policy::PartyRole::kAuditor;
  }
  return policy::PartyRole::kNone;
}

policy::WeightRule WeightsOf(const Plan& plan) {
  switch (plan.update.weight) {
    case WeightRule::kNone:
      return policy::WeightRule::kUnset;
    case WeightRule::kExamples:
      return policy::WeightRule::kExact;
    case WeightRule::kEqual:
      return policy::WeightRule::kEqual;
  }
  return policy::WeightRule::kUnset;
}

policy::UpdateKind DeltaKindOf(const Plan& plan) {
  switch (plan.update.view) {
    case PlanView::kNone:
      return policy::UpdateKind::kNone;
    case PlanView::kSumOnly:
    case PlanView::kMasked:
      return policy::UpdateKind::kDeltaMasked;
    case PlanView::kPlain:
      return policy::UpdateKind::kDeltaPlain;
  }
  return policy::UpdateKind::kNone;
}

// The fewest a site may make for what it sends.
std::uint32_t LocalStepsOf(const TrainingPlan& training) {
  if (training.local_steps != 0) {
    return training.local_steps;
  }
  // An epoch is at least one step wherever a site contributes at all, and what is sent where a site
  // stops early may be the parameters after the first.
  return training.early_stopping.enabled ? 1 : training.local_epochs;
}

}  // namespace

policy::PlanFacts FactsOf(const Plan& plan) {
  policy::PlanFacts facts;
  facts.rounds = plan.rounds.count;
  facts.local_steps = LocalStepsOf(plan.training);
  facts.batch = plan.training.batch;
  facts.clip_l2 = plan.update.clip_l2;
  facts.quorum = plan.rounds.quorum;
  facts.max_sites = plan.update.max_sites;
  facts.scale_bits = plan.update.scale_bits;
  facts.parameters = plan.NumParameters();
  facts.inputs = plan.NumInputs();
  facts.numbers_per_round = facts.parameters;
  facts.metrics_per_round = kTrainMetrics;
  facts.statistics_numbers = plan.normalisation.enabled ? 3 * facts.inputs : 0;
  if (plan.evaluation.enabled) {
    facts.evaluation_numbers =
        plan.schema.label.number
            ? kTrainMetrics
            : kEvaluationMetrics + plan.schema.label.NumClasses() * plan.evaluation.bins;
  }
  facts.weights = WeightsOf(plan);
  facts.dp_mode = policy::DpMode::kNone;
  return facts;
}

policy::Purpose PurposeOf(const Plan& plan) {
  return policy::FromCode<policy::Purpose>(plan.purpose).value_or(policy::Purpose::kNone);
}

policy::View ViewOf(const Plan& plan) {
  switch (plan.update.view) {
    case PlanView::kNone:
      return policy::View::kNone;
    case PlanView::kSumOnly:
      return policy::View::kAggregateOnly;
    case PlanView::kMasked:
      return policy::View::kMaskedIndividual;
    case PlanView::kPlain:
      return policy::View::kPlaintextIndividual;
  }
  return policy::View::kNone;
}

std::vector<policy::UpdateKind> KindsOf(const Plan& plan, PhaseKind phase) {
  switch (phase) {
    case PhaseKind::kNone:
      return {};
    case PhaseKind::kStatistics:
      return {policy::UpdateKind::kStatisticsTable};
    case PhaseKind::kTrain:
      return {DeltaKindOf(plan), policy::UpdateKind::kMetricsAggregate};
    case PhaseKind::kEvaluate:
      return {policy::UpdateKind::kMetricsAggregate};
  }
  return {};
}

std::vector<policy::UpdateKind> AllKindsOf(const Plan& plan) {
  std::vector<policy::UpdateKind> kinds = KindsOf(plan, PhaseKind::kTrain);
  if (plan.normalisation.enabled) {
    kinds.push_back(policy::UpdateKind::kStatisticsTable);
  }
  kinds.push_back(policy::UpdateKind::kModelFinal);
  return kinds;
}

std::uint64_t ScalarMetrics(PhaseKind phase) {
  switch (phase) {
    case PhaseKind::kNone:
    case PhaseKind::kStatistics:
      return 0;
    case PhaseKind::kTrain:
      return kTrainMetrics;
    case PhaseKind::kEvaluate:
      return kEvaluationMetrics;
  }
  return 0;
}

policy::RetentionPromise PromiseOf(const policy::Policy& aggregator) {
  return {.audit = aggregator.retention.audit_min,
          .update = aggregator.retention.update_max,
          .model_review = aggregator.retention.model_review};
}

std::optional<std::chrono::milliseconds> SkewOf(std::uint64_t sent_unix_ms, WallTime now) {
  // A time beyond the year 5000 is none, and would not fit.
  constexpr std::uint64_t kLatest = 100'000'000'000'000;
  if (sent_unix_ms == 0 || sent_unix_ms > kLatest) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(sent_unix_ms) - std::chrono::milliseconds(UnixMilliseconds(now));
}

std::uint64_t UnixMilliseconds(WallTime now) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(now).time_since_epoch().count();
  return since < 0 ? 0 : static_cast<std::uint64_t>(since);
}

policy::Party PartyOf(const RosterEntry& entry) {
  const bool has_place =
      entry.role == crypto::Role::kSite || entry.role == crypto::Role::kAggregator;
  return {.role = RoleOf(entry.role),
          .id = entry.name,
          .organisation = entry.organisation,
          .jurisdiction = entry.jurisdiction,
          .control = entry.control_jurisdictions,
          .evidence = has_place ? policy::LocationEvidence::kCertificate
                                : policy::LocationEvidence::kDeclared};
}

policy::Transfer TransferOf(policy::DecisionPoint point, const Plan& plan, const RosterEntry& site,
                            const RosterEntry& aggregator, const Roster& roster, WallTime now) {
  policy::Transfer transfer;
  transfer.point = point;
  transfer.from = PartyOf(site);
  transfer.to = PartyOf(aggregator);
  transfer.dataset = plan.dataset;
  transfer.view = ViewOf(plan);
  transfer.purpose = PurposeOf(plan);
  transfer.plan = FactsOf(plan);
  transfer.recipients = RecipientsOf(plan, roster, aggregator);
  // INVARIANT: an agent builds every message from numbers on a declared grid, and an aggregator
  // reads nothing else: no other form of output has a way out.
  transfer.outputs = std::set<policy::Output>{};
  transfer.plan_digest = PlanDigest(plan);
  transfer.now = now;
  return transfer;
}

policy::Transfer EnrolmentOf(const RosterEntry& site, const RosterEntry& aggregator, WallTime now) {
  policy::Transfer transfer;
  transfer.point = policy::DecisionPoint::kEnrolment;
  transfer.from = PartyOf(site);
  transfer.to = PartyOf(aggregator);
  transfer.now = now;
  return transfer;
}

policy::Party OperatorParty(std::string_view name, const RosterEntry& aggregator) {
  policy::Party party = PartyOf(aggregator);
  party.role = policy::PartyRole::kOperator;
  party.id = name;
  party.evidence = policy::LocationEvidence::kDeclared;
  return party;
}

std::vector<policy::Party> RecipientsOf(const Plan& plan, const Roster& roster,
                                        const RosterEntry& aggregator) {
  std::vector<policy::Party> parties;
  for (const std::string& word : plan.recipients) {
    if (word == "sites" || word == "operator") {
      const crypto::Role wanted = word == "sites" ? crypto::Role::kSite : crypto::Role::kOperator;
      for (const RosterEntry& entry : roster.entries) {
        if (entry.role == wanted) {
          parties.push_back(wanted == crypto::Role::kSite ? PartyOf(entry)
                                                          : OperatorParty(entry.name, aggregator));
        }
      }
      continue;
    }
    const RosterEntry* named = roster.Find(crypto::Role::kSite, word);
    policy::Party nobody;  // without a place: denied
    nobody.role = policy::PartyRole::kSite;
    nobody.id = word;
    parties.push_back(named != nullptr ? PartyOf(*named) : nobody);
  }
  return parties;
}

}  // namespace domicile::contracts
