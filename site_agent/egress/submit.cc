// From the outbox to the receipt: decided again, logged before the first byte and after the last.
#include <atomic>
#include <utility>

#include "audit/peer_heads.h"
#include "audit/records.h"
#include "base/log.h"
#include "site_agent/egress/phase_runner.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

std::string Raw(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }

v1::UpdateHeader HeaderOf(const OpenedPhase& phase, const OutboxRow& row, std::uint64_t instance,
                          const audit::ProvenLeaf& decision) {
  v1::UpdateHeader header;
  header.mutable_phase()->set_job(phase.id.job.text());
  header.mutable_phase()->set_round(phase.id.round);
  header.mutable_phase()->set_phase(static_cast<v1::PhaseKind>(phase.id.phase));
  header.mutable_epoch()->set_starts(phase.epoch.starts);
  header.mutable_epoch()->set_attempt(phase.epoch.attempt);
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
  std::vector<Digest> proof;
  for (const std::string& node : receipt.leaf().proof()) {
    ASSIGN_OR_RETURN(proof.emplace_back(), DigestFromBytes(AsBytes(node)));
  }
  ASSIGN_OR_RETURN(const audit::CheckedLeaf checked,
                   audit::CheckLeaf({.index = receipt.leaf().index(),
                                     .leaf = receipt.leaf().leaf(),
                                     .proof = proof,
                                     .head_note = receipt.leaf().head()},
                                    log_key));
  ASSIGN_OR_RETURN(const audit::IngressReceived received,
                   audit::ReadIngressReceived(checked.leaf.event));
  if (received.site != site || received.digest != row.digest || received.key != LogKey(phase)) {
    return Error(StatusCode::kDataLoss, "the receipt is for another update");
  }
  return OkStatus();
}

Reason ReasonOf(const v1::Refusal& refusal) {
  const std::optional<Reason> reason = policy::ReasonFromNumber(refusal.reason());
  return reason && *reason != Reason::kNone ? *reason : Reason::kMalformed;
}

}  // namespace

Reason PhaseRunner::Submit(const OpenedPhase& phase, const OutboxRow& row, Connection& connection,
                           const std::stop_token& stop) {
  const Terms& terms = connection.terms;
  std::variant<JobAtHand, Reason> found = FindJobAtHand(phase, terms);
  if (const auto* reason = std::get_if<Reason>(&found)) {
    return *reason;
  }
  const JobAtHand& job = std::get<JobAtHand>(found);
  if (row.policy != terms.policies.digests.effective) {
    return Reason::kPolicyDigestMismatch;  // decided under a policy that is no longer in force
  }
  const StatusOr<JobBorder> border =
      BorderOfJob(site_, terms, job.plan, phase.id, job.grant.approvals);
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
  const policy::Permit permit = *std::move(decided.decision.permit);  // consumed by this sending

  const std::string path =
      site_.books.With([&](SiteStore& store) { return store.OutboxPath(row.digest); });
  const StatusOr<wire::SharedBytes> bytes = wire::MapFile(path);
  const StatusOr<audit::ProvenLeaf> decision = site_.books.LeafWithProof(row.leaf);
  const auto step = [&](audit::EventType type, std::uint64_t count, const Reason* reason,
                        const std::uint64_t* receipt) {
    audit::EgressStep record{.key = LogKey(phase),
                             .digest = row.digest,
                             .bytes = count,
                             .receipt_seq = std::nullopt,
                             .reason = {}};
    if (reason != nullptr) {
      record.reason = policy::Code(*reason);
    }
    if (receipt != nullptr) {
      record.receipt_seq = *receipt;
    }
    return site_.books.Append(ToEvent(type, record)).status();
  };
  if (!bytes.ok() || !decision.ok() ||
      !step(audit::EventType::kEgressIntent, permit.Scope().bytes, nullptr, nullptr).ok()) {
    return Reason::kLogUnavailable;
  }

  std::atomic<std::uint64_t> sent = 0;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      phase.deadline - std::chrono::steady_clock::now());
  const StatusOr<wire::SubmitAnswer> answer = connection.client->SubmitUpdate(
      HeaderOf(phase, row, site_.books.Instance(), *decision), *bytes,
      [&](std::uint64_t end) { sent = end; },
      {.timeout = std::max(left, std::chrono::milliseconds(1)), .stop = stop});
  Reason reason = Reason::kConnectionLost;
  if (answer.ok()) {
    if (const auto* receipt = std::get_if<v1::Receipt>(&*answer)) {
      const Status valid = CheckReceipt(*receipt, phase, row, site_.id, terms.aggregator_log);
      if (valid.ok()) {
        const std::uint64_t leaf = receipt->leaf().index();
        return step(audit::EventType::kEgressDone, row.size_bytes, nullptr, &leaf).ok()
                   ? Reason::kNone
                   : Reason::kLogUnavailable;
      }
      LogError(std::string(Message(valid)));
      reason = Reason::kLogHead;
    } else {
      reason = ReasonOf(std::get<v1::Refusal>(*answer));
    }
  } else {
    LogWarning("sending an update: " + std::string(Message(answer.status())));
  }
  return step(audit::EventType::kEgressAborted, sent, &reason, nullptr).ok()
             ? reason
             : Reason::kLogUnavailable;
}

}  // namespace domicile::site_agent
