// From the outbox to the receipt: decided again, logged before the first byte and after the last.
#include <algorithm>
#include <atomic>
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "site_agent/egress/phase_runner.h"
#include "site_agent/egress/wire_words.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

v1::UpdateHeader HeaderOf(const OpenedPhase& phase, const OutboxRow& row, std::uint64_t instance,
                          const audit::ProvenLeaf& decision) {
  v1::UpdateHeader header;
  Fill(*header.mutable_phase(), phase.id);
  Fill(*header.mutable_epoch(), phase.epoch);
  header.mutable_update()->set_digest(Raw(row.digest));
  header.mutable_update()->set_size_bytes(row.size_bytes);
  header.set_base_model(Raw(row.base_model));
  header.set_effective_policy_digest(Raw(row.policy));
  header.set_instance(instance);
  header.mutable_decision()->set_index(decision.index);
  header.mutable_decision()->set_leaf(decision.leaf);
  for (const Digest& node : decision.proof) {
    header.mutable_decision()->add_proof(Raw(node));
  }
  header.mutable_decision()->set_head(decision.head.note);
  return header;
}

// Whether the receipt is for these bytes, by a leaf of the aggregator's log.
Status CheckReceipt(const v1::Receipt& receipt, const OpenedPhase& phase, const OutboxRow& row,
                    const SiteId& site, const crypto::NoteVerifier& log_key) {
  ASSIGN_OR_RETURN(const audit::CheckedLeaf checked, CheckWireLeaf(receipt.leaf(), log_key));
  ASSIGN_OR_RETURN(const audit::IngressReceived received,
                   audit::ReadIngressReceived(checked.leaf.event));
  if (received.site != site || received.digest != row.digest ||
      received.key != LogKey(phase.id, phase.epoch)) {
    return Error(StatusCode::kDataLoss, "the receipt is for another update");
  }
  return OkStatus();
}

std::chrono::milliseconds TimeLeft(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace

std::variant<policy::Permit, Reason> PhaseRunner::DecideAgain(const OpenedPhase& phase,
                                                              const OutboxRow& row,
                                                              const Terms& terms) {
  std::variant<JobAtHand, Reason> found = FindJobAtHand(phase, terms);
  if (const auto* reason = std::get_if<Reason>(&found)) {
    return *reason;
  }
  const JobAtHand& job = std::get<JobAtHand>(found);
  if (row.policy != terms.policies.digests.effective) {
    return Reason::kPolicyDigestMismatch;  // decided under a policy that is no longer in force
  }
  if (row.base_model != phase.model) {
    return Reason::kWrongBaseModel;  // these bytes answer another opening of the phase
  }
  if (phase.id.phase == contracts::PhaseKind::kStatistics) {
    // A new attempt may have other participants: to them these bytes are another question.
    const StatusOr<EarlierAnswer> before = site_.books.With([&](SiteStore& store) {
      return FindAnswer(store, QuestionOf(job.plan, job.dataset_commitment, phase.participants));
    });
    if (!before.ok() || !std::holds_alternative<TaskResult>(*before)) {
      return before.ok() ? Reason::kStatDifference : Reason::kLogUnavailable;
    }
  }
  const StatusOr<JobBorder> border = BorderOfJob(site_, terms, job.plan, phase.id, &job.grant);
  if (!border.ok()) {
    return Reason::kLogUnavailable;
  }
  Decided decided = DecideEgress(terms.policies, job.plan, *border,
                                 {.phase = phase.id.phase,
                                  .bytes = row.size_bytes,
                                  .numbers = row.numbers,
                                  .records = row.records},
                                 site_.clock.Now());
  if (!decided.decision.permit) {
    return LogDenied(phase, job.plan, terms, decided.record).ok() ? decided.decision.Why()
                                                                  : Reason::kLogUnavailable;
  }
  return *std::move(decided.decision.permit);
}

Reason PhaseRunner::Submit(const OpenedPhase& phase, const OutboxRow& row, Connection& connection,
                           const std::stop_token& stop) {
  std::variant<policy::Permit, Reason> decided = DecideAgain(phase, row, connection.terms);
  if (const auto* reason = std::get_if<Reason>(&decided)) {
    return *reason;
  }
  const auto permit = std::get<policy::Permit>(std::move(decided));  // consumed by this sending
  audit::EgressStep step;
  step.key = LogKey(phase.id, phase.epoch);
  step.digest = row.digest;
  step.bytes = permit.Scope().bytes;
  {
    const MutexLock lock(mutex_);
    if (stop.stop_requested()) {
      return Reason::kConnectionLost;
    }
    sending_ = true;
  }
  Status logged = site_.books.Append(ToEvent(audit::EventType::kEgressIntent, step)).status();
  Reason reason = Reason::kLogUnavailable;
  if (logged.ok()) {
    std::uint64_t receipt_leaf = 0;
    step.bytes = 0;
    reason = Send(phase, row, connection, stop, step.bytes, receipt_leaf);
    audit::EventType end = audit::EventType::kEgressDone;
    if (reason == Reason::kNone) {
      step.receipt_seq = receipt_leaf;
    } else {
      step.reason = policy::Code(reason);
      end = audit::EventType::kEgressAborted;
    }
    logged = site_.books.Append(ToEvent(end, step)).status();
  }
  {
    const MutexLock lock(mutex_);
    sending_ = false;
  }
  changed_.notify_all();
  return logged.ok() ? reason : StorageReason(logged);
}

Reason PhaseRunner::Send(const OpenedPhase& phase, const OutboxRow& row, Connection& connection,
                         const std::stop_token& stop, std::uint64_t& sent_bytes,
                         std::uint64_t& receipt_leaf) {
  const std::string path =
      site_.books.With([&](SiteStore& store) { return store.OutboxPath(row.digest); });
  const StatusOr<wire::SharedBytes> bytes = wire::MapFile(path);
  const StatusOr<audit::ProvenLeaf> decision = site_.books.LeafWithProof(row.leaf);
  if (!bytes.ok() || !decision.ok()) {
    return StorageReason(decision.ok() ? bytes.status() : decision.status());
  }
  std::atomic<std::uint64_t> sent = 0;
  const StatusOr<wire::SubmitAnswer> answer = connection.client->SubmitUpdate(
      HeaderOf(phase, row, site_.books.Instance(), *decision), *bytes,
      [&](std::uint64_t end) { sent = end; }, {.timeout = TimeLeft(phase.deadline), .stop = stop});
  sent_bytes = sent;
  if (!answer.ok()) {
    LogWarning("sending an update: " + std::string(Message(answer.status())));
    return Reason::kConnectionLost;
  }
  const auto* receipt = std::get_if<v1::Receipt>(&*answer);
  if (receipt == nullptr) {
    return ReasonFrom(std::get<v1::Refusal>(*answer));
  }
  const Status valid =
      CheckReceipt(*receipt, phase, row, site_.id, connection.terms.aggregator_log);
  if (!valid.ok()) {
    LogError(std::string(Message(valid)));
    return Reason::kLogHead;
  }
  sent_bytes = row.size_bytes;  // also if an earlier try had sent the beginning
  receipt_leaf = receipt->leaf().index();
  return Reason::kNone;
}

}  // namespace domicile::site_agent
