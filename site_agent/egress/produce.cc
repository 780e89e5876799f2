// From an open phase to an update in the outbox: intake, data, training, the gate.
#include <chrono>
#include <string>
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "site_agent/egress/model_taker.h"
#include "site_agent/egress/outbox.h"
#include "site_agent/egress/phase_runner.h"
#include "site_agent/egress/update_builder.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// What failed, as the trainer's connection says it.
Reason TrainerReason(const Status& failed, bool stopped) {
  if (failed.code() == StatusCode::kUnavailable) {
    return Reason::kTrainerUnavailable;
  }
  return stopped ? Reason::kCancelled : Reason::kTrainerFailed;
}

// Shown in this site's own output, at most every ten seconds.
ProgressSink TellProgress(const OpenedPhase& phase) {
  using Steady = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPace(10);
  const std::string task = "`" + phase.id.job.text() + "` round " + std::to_string(phase.id.round) +
                           " " + std::string(contracts::PhaseName(phase.id.phase)) + ": ";
  return [task, kPace, next = Steady::now() + kPace](const TaskProgress& progress) mutable {
    if (Steady::now() >= next) {
      next = Steady::now() + kPace;
      LogInfo(task + ProgressText(progress));
    }
  };
}

// The row and the leaf of what the gate lets through.
Release ReleaseOf(const OpenedPhase& phase, const JobAtHand& job, const Terms& terms,
                  const BuiltUpdate& update, const audit::DecisionRecord& decision, WallTime now) {
  return {
      .row = {.phase = phase.id,
              .digest = update.digest,
              .size_bytes = update.bytes.size(),
              .base_model = phase.model,
              .policy = terms.policies.digests.effective,
              .leaf = 0,
              .numbers = update.numbers,
              .records = update.records},
      .decided = {.key = LogKey(phase.id, phase.epoch),
                  .transfer = update.digest,
                  .kinds = KindCodes(job.plan, phase.id.phase),
                  .dataset = job.plan.dataset,
                  .from = SitePlace(terms),
                  .to = AggregatorPlace(terms),
                  .decision = decision,
                  .bytes = update.bytes.size(),
                  .numbers = update.numbers,
                  .capacity_bits = update.capacity_bits,
                  .cohort_bucket = 0,
                  .epsilon_micro = MicroEpsilon(contracts::FactsOf(job.plan).epsilon.value_or(0)),
                  .grant = job.grant.digest},
      .decided_at = now,
      .dataset_commitment = job.dataset_commitment,
      .question = std::nullopt,
      .answer = {}};
}

}  // namespace

std::variant<JobAtHand, Reason> PhaseRunner::FindJobAtHand(const OpenedPhase& phase,
                                                           const Terms& terms) {
  const StatusOr<std::optional<JobRow>> row =
      site_.books.With([&](SiteStore& store) { return store.FindJob(phase.id.job); });
  if (!row.ok()) {
    return Reason::kLogUnavailable;
  }
  if (!*row) {
    return Reason::kJobUnknown;  // never offered here
  }
  StatusOr<contracts::Plan> plan = contracts::PlanFromText((*row)->plan);
  if (!plan.ok()) {
    return Reason::kMalformed;
  }
  const std::optional<HelloMessage> trainer = site_.trainer.Facts();
  if (!trainer) {
    return Reason::kTrainerUnavailable;
  }
  const contracts::GrantBody wanted = WantedGrant(site_, terms, **row, *plan, *trainer);
  Reason why = Reason::kApprovalMissing;
  StatusOr<std::optional<FoundGrant>> grant = GrantFor(site_, terms, wanted, why);
  if (!grant.ok() || !*grant) {
    return why;
  }
  return JobAtHand{.row = **row,
                   .plan = *std::move(plan),
                   .plan_digest = wanted.plan,
                   .dataset_commitment = wanted.dataset_commitment,
                   .grant = **std::move(grant)};
}

std::variant<OutboxRow, Reason> PhaseRunner::Produce(const OpenedPhase& phase,
                                                     const std::shared_ptr<Connection>& connection,
                                                     const std::stop_token& stop) {
  const Terms& terms = connection->terms;
  std::variant<JobAtHand, Reason> found = FindJobAtHand(phase, terms);
  if (const auto* reason = std::get_if<Reason>(&found)) {
    return *reason;
  }
  const JobAtHand& job = std::get<JobAtHand>(found);
  std::variant<Bytes, Reason> model = TakeModel(phase, job, *connection, stop);
  if (const auto* reason = std::get_if<Reason>(&model)) {
    return *reason;
  }
  policy::Obligations obligations;
  if (const Reason reason = OpenData(phase, job, terms, obligations); reason != Reason::kNone) {
    return reason;
  }
  std::variant<TaskResult, Reason> result = Train(phase, job, terms, std::get<Bytes>(model), stop);
  if (const auto* reason = std::get_if<Reason>(&result)) {
    return *reason;
  }
  return PassGate(phase, job, terms, std::get<TaskResult>(result), obligations, stop);
}

std::variant<Bytes, Reason> PhaseRunner::FetchModel(const Digest& digest, std::uint64_t size,
                                                    const OpenedPhase& phase,
                                                    Connection& connection,
                                                    const std::stop_token& stop) {
  v1::BlobRef blob;
  blob.set_digest(digest.bytes.data(), digest.bytes.size());
  blob.set_size_bytes(size);
  Bytes bytes(size);
  std::uint64_t have = 0;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      phase.deadline - std::chrono::steady_clock::now());
  const Status fetched = connection.client->FetchBlob(
      blob, bytes, have, {.timeout = std::max(left, std::chrono::milliseconds(1)), .stop = stop});
  if (fetched.ok()) {
    return bytes;
  }
  LogWarning("fetching a model: " + std::string(Message(fetched)));
  switch (fetched.code()) {
    case StatusCode::kPermissionDenied:
      return Reason::kForbidden;
    case StatusCode::kNotFound:  // the phase is over
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnavailable:
      return Reason::kConnectionLost;
    case StatusCode::kDeadlineExceeded:
      return Reason::kDeadline;
    default:
      return Reason::kModelDigest;
  }
}

std::variant<Bytes, Reason> PhaseRunner::TakeModel(const OpenedPhase& phase, const JobAtHand& job,
                                                   Connection& connection,
                                                   const std::stop_token& stop) {
  const Terms& terms = connection.terms;
  ModelTaker taker(site_.books, job.plan, LogKey(phase.id, phase.epoch),
                   {.aggregator = AggregatorPlace(terms), .site = SitePlace(terms)},
                   [&](const Digest& digest, std::uint64_t size) {
                     return FetchModel(digest, size, phase, connection, stop);
                   });
  return taker.Take(phase.model, phase.model_bytes);
}

Reason PhaseRunner::OpenData(const OpenedPhase& phase, const JobAtHand& job, const Terms& terms,
                             policy::Obligations& obligations) {
  const StatusOr<JobBorder> border = BorderOfJob(site_, terms, job.plan, phase.id, &job.grant);
  if (!border.ok()) {
    return Reason::kLogUnavailable;
  }
  const Decided decided = DecideDataOpen(terms.policies, job.plan, *border, site_.clock.Now());
  if (!decided.Allowed()) {
    const Status logged = LogDenied(phase, job.plan, terms, decided.record);
    return logged.ok() ? decided.decision.Why() : StorageReason(logged);
  }
  obligations = decided.decision.obligations;
  const StatusOr<std::uint64_t> recorded =
      site_.books.Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
        RETURN_IF_ERROR(store.AddRun(phase.id.job, job.plan.dataset, site_.clock.Now()));
        return audit::EventBuilder(audit::EventType::kDataOpened)
            .Phase(LogKey(phase.id, phase.epoch))
            .Set("dataset", job.plan.dataset)
            .Set("dataset_commitment", job.dataset_commitment)
            .Set("grant", job.grant.digest)
            .Set("decision", ToJson(decided.record))
            .Build();
      });
  return recorded.ok() ? Reason::kNone : StorageReason(recorded.status());
}

std::variant<TaskResult, Reason> PhaseRunner::Train(const OpenedPhase& phase, const JobAtHand& job,
                                                    const Terms& terms, const Bytes& model,
                                                    const std::stop_token& stop) {
  if (phase.id.phase == contracts::PhaseKind::kStatistics) {
    // Asked before of this version and these columns: the same numbers, or nothing.
    StatusOr<EarlierAnswer> before = site_.books.With([&](SiteStore& store) {
      return FindAnswer(store, QuestionOf(job.plan, job.dataset_commitment, phase.participants));
    });
    if (!before.ok()) {
      return Reason::kLogUnavailable;
    }
    if (const auto* reason = std::get_if<Reason>(&*before)) {
      return *reason;
    }
    if (auto* result = std::get_if<TaskResult>(&*before)) {
      return std::move(*result);
    }
  }
  const auto log = [&](audit::EventBuilder builder) {
    return site_.books.Append(builder.Phase(LogKey(phase.id, phase.epoch)).Build()).status();
  };
  if (const Status logged = log(audit::EventBuilder(audit::EventType::kTrainStarted)
                                    .Set("grant", job.grant.digest)
                                    .Set("trainer", job.grant.body.trainer));
      !logged.ok()) {
    return StorageReason(logged);
  }
  const TaskRequest request{.job = phase.id.job,
                            .round = phase.id.round,
                            .phase = phase.id.phase,
                            .grant = job.grant.note,
                            .plan_text = job.row.plan,
                            .effective_policy = terms.policies.digests.effective,
                            .base_model = job.row.base_model,
                            .model = phase.model,
                            .model_file = model};
  StatusOr<TaskOutcome> outcome =
      site_.trainer.RunTask(request, TellProgress(phase), phase.deadline, stop);
  Reason reason = Reason::kNone;
  if (!outcome.ok()) {
    LogWarning("the trainer: " + std::string(Message(outcome.status())));
    reason = TrainerReason(outcome.status(), stop.stop_requested());
  } else if (const auto* failed = std::get_if<FailedMessage>(&*outcome)) {
    reason = failed->reason;
  }
  audit::EventBuilder ended(audit::EventType::kTrainEnded);
  ended.Set("result", reason == Reason::kNone ? "done" : "failed");
  if (reason != Reason::kNone) {
    ended.Set("reason", std::string(policy::Code(reason)));
  }
  if (const Status logged = log(ended); !logged.ok()) {
    return StorageReason(logged);
  }
  if (reason != Reason::kNone) {
    return reason;
  }
  return std::get<TaskResult>(*std::move(outcome));
}

std::variant<OutboxRow, Reason> PhaseRunner::PassGate(const OpenedPhase& phase,
                                                      const JobAtHand& job, const Terms& terms,
                                                      const TaskResult& result,
                                                      const policy::Obligations& obligations,
                                                      const std::stop_token& stop) {
  const auto* statistics = std::get_if<StatisticsNumbers>(&result.numbers);
  if (statistics != nullptr && IsTooClose(*statistics, obligations.min_cohort)) {
    return Reason::kStatDifference;
  }
  const UpdateContext context{.job = phase.id.job,
                              .plan = job.plan_digest,
                              .round = phase.id.round,
                              .phase = phase.id.phase,
                              .base_model = phase.model,
                              .policy = terms.policies.digests.effective};
  std::variant<BuiltUpdate, Reason> built = BuildUpdate(job.plan, context, result, obligations);
  if (const auto* reason = std::get_if<Reason>(&built)) {
    // No policy had to be asked; that nothing left is logged like every other denial.
    const Status logged = LogDenied(phase, job.plan, terms,
                                    {.result = "deny",
                                     .reasons = {std::string(policy::Code(*reason))},
                                     .rules = {},
                                     .policies = terms.policies.digests});
    return logged.ok() ? *reason : StorageReason(logged);
  }
  const BuiltUpdate& update = std::get<BuiltUpdate>(built);
  const StatusOr<JobBorder> border = BorderOfJob(site_, terms, job.plan, phase.id, &job.grant);
  if (!border.ok()) {
    return Reason::kLogUnavailable;
  }
  const WallTime now = site_.clock.Now();
  const Decided decided = DecideEgress(terms.policies, job.plan, *border,
                                       {.phase = phase.id.phase,
                                        .bytes = update.bytes.size(),
                                        .numbers = update.numbers,
                                        .records = update.records},
                                       now);
  if (!decided.Allowed()) {
    const Status logged = LogDenied(phase, job.plan, terms, decided.record);
    return logged.ok() ? decided.decision.Why() : StorageReason(logged);
  }
  Release release = ReleaseOf(phase, job, terms, update, decided.record, now);
  if (statistics != nullptr) {
    release.question = QuestionOf(job.plan, job.dataset_commitment, phase.participants);
    release.answer = *statistics;
  }
  return PutInOutbox(site_.books, release, update.bytes, stop);
}

}  // namespace domicile::site_agent
