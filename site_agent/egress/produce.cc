// From an open phase to an update in the outbox: intake, data, training, the gate.
#include <utility>

#include "audit/records.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"
#include "models/safetensors.h"
#include "site_agent/egress/model_intake.h"
#include "site_agent/egress/phase_runner.h"
#include "site_agent/egress/update_builder.h"
#include "updates/encoding.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// Statistics are one question for one column set: what the trainer computes depends on these alone.
Digest ColumnsDigest(const contracts::Plan& plan) {
  Json columns;
  columns.Set("schema", contracts::ToJson(plan.schema));
  columns.Set("scale_bits", plan.normalisation.scale_bits);
  JsonArray offsets;
  for (std::size_t i = 0; i < plan.normalisation.offsets.size(); ++i) {
    offsets.emplace_back(PrintDouble(plan.normalisation.offsets[i]));
    offsets.emplace_back(PrintDouble(plan.normalisation.ranges[i]));
  }
  columns.Set("offsets_and_ranges", Json(std::move(offsets)));
  return crypto::Sha256(AsBytes(PrintJson(columns)));
}

Digest ParticipantsDigest(const std::vector<SiteId>& sites) {
  JsonArray names;
  for (const SiteId& site : sites) {
    names.emplace_back(site.text());
  }
  return crypto::Sha256(AsBytes(PrintJson(Json(std::move(names)))));
}

// A stored release of statistics as the trainer would have answered.
StatusOr<TaskResult> ResultOf(const StatisticsRow& row) {
  if (row.numbers.size() % (3 * sizeof(std::int64_t)) != 0) {
    return Error(StatusCode::kDataLoss, "the stored statistics are damaged");
  }
  const std::size_t inputs = row.numbers.size() / (3 * sizeof(std::int64_t));
  StatisticsNumbers numbers;
  ByteSpan rest = row.numbers;
  for (std::vector<std::int64_t>* list : {&numbers.count, &numbers.sum, &numbers.sum_squares}) {
    for (std::size_t i = 0; i < inputs; ++i) {
      list->push_back(static_cast<std::int64_t>(ReadU64(rest)));
      rest = rest.subspan(sizeof(std::int64_t));
    }
  }
  return TaskResult{.rows = row.rows, .numbers = std::move(numbers)};
}

Bytes Flat(const StatisticsNumbers& numbers) {
  Bytes flat = updates::EncodeI64(numbers.count);
  for (const std::vector<std::int64_t>* list : {&numbers.sum, &numbers.sum_squares}) {
    const Bytes more = updates::EncodeI64(*list);
    flat.insert(flat.end(), more.begin(), more.end());
  }
  return flat;
}

Reason StorageReason(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted ? Reason::kDiskFull
                                                         : Reason::kLogUnavailable;
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
  StatusOr<std::optional<FoundGrant>> grant =
      FindGrant(site_.config, wanted, site_.clock.Now(), why);
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
  JobAtHand& job = std::get<JobAtHand>(found);
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
  return PassGate(phase, job, terms, std::get<TaskResult>(result), obligations);
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

// The model of this phase, once it has passed intake. Its last predecessor is kept on disk, since
// the next one is measured against it.
std::variant<Bytes, Reason> PhaseRunner::TakeModel(const OpenedPhase& phase, JobAtHand& job,
                                                   Connection& connection,
                                                   const std::stop_token& stop) {
  JobRow& row = job.row;
  const Digest expected = row.committed_model.IsZero() ? row.base_model : row.committed_model;
  if (phase.model == row.last_model) {
    StatusOr<std::string> kept =
        site_.books.With([&](SiteStore& store) { return store.ReadModel(row.last_model); });
    if (kept.ok()) {
      return ToBytes(*kept);
    }
  }
  const auto refuse = [&](Reason reason) -> std::variant<Bytes, Reason> {
    const Status logged = site_.books
                              .Append(audit::EventBuilder(audit::EventType::kModelRefused)
                                          .Phase(LogKey(phase))
                                          .Set("model", phase.model)
                                          .Set("bytes", phase.model_bytes)
                                          .Set("reason", std::string(policy::Code(reason)))
                                          .Build())
                              .status();
    return logged.ok() ? reason : StorageReason(logged);
  };
  if (phase.model != expected) {
    return refuse(Reason::kModelDigest);  // not what the last verified commit says
  }
  const auto take = [&](const Digest& digest, std::uint64_t size) -> std::variant<Bytes, Reason> {
    std::variant<Bytes, Reason> bytes = FetchModel(digest, size, phase, connection, stop);
    if (std::holds_alternative<Reason>(bytes)) {
      return bytes;
    }
    const StatusOr<std::vector<models::NamedTensor>> tensors =
        models::ParseSafetensors(std::get<Bytes>(bytes));
    if (!tensors.ok()) {
      return refuse(Reason::kModelShape);
    }
    IntakeState state{.last = {},
                      .train_commits = row.train_commits,
                      .statistics_committed = row.statistics_committed};
    if (digest == row.base_model) {
      state.last = *tensors;  // the digest is the one the grant names
    } else {
      const StatusOr<std::string> last =
          site_.books.With([&](SiteStore& store) { return store.ReadModel(row.last_model); });
      StatusOr<std::vector<models::NamedTensor>> parsed =
          last.ok() ? models::ParseSafetensors(AsBytes(*last)) : last.status();
      if (!parsed.ok()) {
        return refuse(Reason::kModelDigest);
      }
      state.last = *std::move(parsed);
    }
    if (const Reason reason = CheckModel(job.plan, state, *tensors); reason != Reason::kNone) {
      return refuse(reason);
    }
    const Digest before = row.last_model;
    row.last_model = digest;
    row.train_commits = digest == row.base_model ? row.train_commits : 0;
    row.statistics_committed = digest == row.base_model && row.statistics_committed;
    const auto record = [&]() -> Status {
      RETURN_IF_ERROR(site_.books.With(
          [&](SiteStore& store) { return store.WriteModel(digest, std::get<Bytes>(bytes)); }));
      RETURN_IF_ERROR(site_.books
                          .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                            RETURN_IF_ERROR(store.PutJob(row));
                            return ToEvent(
                                audit::EventType::kModelIntake,
                                audit::ModelTransfer{.key = LogKey(phase),
                                                     .model = digest,
                                                     .bytes = size,
                                                     .kind = "model.final",
                                                     .from = AggregatorPlace(connection.terms),
                                                     .to = SitePlace(connection.terms),
                                                     .decision = {}});
                          })
                          .status());
      return before.IsZero() || before == digest
                 ? OkStatus()
                 : site_.books.With([&](SiteStore& store) { return store.RemoveModel(before); });
    };
    const Status recorded = record();
    if (!recorded.ok()) {
      LogError(std::string(Message(recorded)));
      return StorageReason(recorded);
    }
    return bytes;
  };
  if (row.last_model.IsZero() && phase.model != row.base_model) {
    // Joined late: the model is measured from the first one, one step for each verified round.
    std::variant<Bytes, Reason> base = take(row.base_model, row.base_model_bytes);
    if (std::holds_alternative<Reason>(base)) {
      return base;
    }
  }
  return take(phase.model, phase.model_bytes);
}

Reason PhaseRunner::OpenData(const OpenedPhase& phase, const JobAtHand& job, const Terms& terms,
                             policy::Obligations& obligations) {
  const StatusOr<JobBorder> border =
      BorderOfJob(site_, terms, job.plan, phase.id, job.grant.approvals);
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
            .Phase(LogKey(phase))
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
    // Asked before of this version and these columns: the same bytes, or nothing.
    const StatusOr<std::optional<StatisticsRow>> before = site_.books.With([&](SiteStore& store) {
      return store.FindStatistics(job.dataset_commitment, ColumnsDigest(job.plan));
    });
    if (!before.ok()) {
      return Reason::kLogUnavailable;
    }
    if (*before) {
      if ((*before)->participants != ParticipantsDigest(phase.participants)) {
        return Reason::kStatDifference;
      }
      StatusOr<TaskResult> result = ResultOf(**before);
      return result.ok() ? std::variant<TaskResult, Reason>(*std::move(result))
                         : Reason::kLogUnavailable;
    }
  }
  const auto log = [&](audit::EventBuilder builder) {
    return site_.books.Append(builder.Phase(LogKey(phase)).Build()).status();
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
  StatusOr<TaskOutcome> outcome = site_.trainer.RunTask(
      request, [](std::uint32_t) {}, phase.deadline, stop);
  Reason reason = Reason::kNone;
  if (!outcome.ok()) {
    LogWarning("the trainer: " + std::string(Message(outcome.status())));
    reason = outcome.status().code() == StatusCode::kUnavailable ? Reason::kTrainerUnavailable
             : stop.stop_requested()                             ? Reason::kCancelled
                                                                 : Reason::kTrainerFailed;
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
                                                      const policy::Obligations& obligations) {
  const auto* statistics = std::get_if<StatisticsNumbers>(&result.numbers);
  if (statistics != nullptr && statistics->records_apart &&
      *statistics->records_apart < obligations.min_cohort) {
    return Reason::kStatDifference;  // a version that differs by fewer records than may be told
                                     // apart
  }
  const UpdateContext context{.job = phase.id.job,
                              .plan = job.plan_digest,
                              .round = phase.id.round,
                              .phase = phase.id.phase,
                              .base_model = phase.model,
                              .policy = terms.policies.digests.effective};
  std::variant<BuiltUpdate, Reason> built = BuildUpdate(job.plan, context, result, obligations);
  if (const auto* reason = std::get_if<Reason>(&built)) {
    return *reason;
  }
  const BuiltUpdate& update = std::get<BuiltUpdate>(built);
  const StatusOr<JobBorder> border =
      BorderOfJob(site_, terms, job.plan, phase.id, job.grant.approvals);
  if (!border.ok()) {
    return Reason::kLogUnavailable;
  }
  const Decided decided = DecideEgress(terms.policies, job.plan, *border,
                                       {.phase = phase.id.phase,
                                        .bytes = update.bytes.size(),
                                        .numbers = update.numbers,
                                        .records = update.records},
                                       site_.clock.Now());
  if (!decided.Allowed()) {
    const Status logged = LogDenied(phase, job.plan, terms, decided.record);
    return logged.ok() ? decided.decision.Why() : StorageReason(logged);
  }
  OutboxRow row{.phase = phase.id,
                .digest = update.digest,
                .size_bytes = update.bytes.size(),
                .base_model = phase.model,
                .policy = terms.policies.digests.effective,
                .leaf = 0,
                .numbers = update.numbers,
                .records = update.records};
  const auto record = [&](SiteStore& store, std::uint64_t leaf) -> StatusOr<audit::Event> {
    row.leaf = leaf;
    RETURN_IF_ERROR(store.AddOutbox(row));
    // The same statistics again tell nothing new, and are charged once.
    std::uint64_t charged = update.numbers;
    if (statistics != nullptr) {
      const Digest columns = ColumnsDigest(job.plan);
      ASSIGN_OR_RETURN(const auto before, store.FindStatistics(job.dataset_commitment, columns));
      if (before) {
        charged = 0;
      } else {
        RETURN_IF_ERROR(store.AddStatistics(job.dataset_commitment, columns,
                                            {.participants = ParticipantsDigest(phase.participants),
                                             .numbers = Flat(*statistics),
                                             .rows = result.rows}));
      }
    }
    RETURN_IF_ERROR(store.AddRelease(job.plan.dataset, phase.id, update.digest, charged,
                                     update.records, update.bytes.size()));
    return ToEvent(audit::EgressDecided{.key = LogKey(phase),
                                        .transfer = update.digest,
                                        .kinds = KindCodes(job.plan, phase.id.phase),
                                        .dataset = job.plan.dataset,
                                        .from = SitePlace(terms),
                                        .to = AggregatorPlace(terms),
                                        .decision = decided.record,
                                        .bytes = update.bytes.size(),
                                        .numbers = update.numbers,
                                        .capacity_bits = update.capacity_bits,
                                        .cohort_bucket = 0,
                                        .grant = job.grant.digest});
  };
  // The file first, durably: a row never names bytes that are not there.
  const std::string path =
      site_.books.With([&](SiteStore& store) { return store.OutboxPath(update.digest); });
  Status stored = WriteFileDurably(path, update.bytes);
  if (stored.ok()) {
    stored = site_.books.Record(record).status();
  }
  if (!stored.ok()) {
    LogError("the outbox: " + std::string(Message(stored)));
    return StorageReason(stored);
  }
  return row;
}

}  // namespace domicile::site_agent
