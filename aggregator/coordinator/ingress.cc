// Updates arriving: checked, recorded, folded, acknowledged.
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "updates/plan_sections.h"

namespace domicile::aggregator {

namespace {

using policy::Reason;

Refusal RefuseWith(Reason reason, const JobId& job) {
  Refusal refusal;
  refusal.reason = reason;
  refusal.job = job;
  return refusal;
}

Refusal RefusalOf(const SubmissionAnswer& answer, const JobId& job) {
  Refusal refusal = RefuseWith(answer.reason, job);
  refusal.open_phase = answer.open_key;
  refusal.open_model = answer.open_model.value_or(Digest{});
  return refusal;
}

SubmissionHeader HeaderOf(const UpdateHead& head) {
  return {
      .key = head.key, .epoch = head.epoch, .digest = head.digest, .base_model = head.base_model};
}

std::vector<std::string> KindCodes(const contracts::Plan& plan, PhaseKind phase) {
  std::vector<std::string> codes;
  for (const policy::UpdateKind kind : contracts::KindsOf(plan, phase)) {
    codes.emplace_back(policy::Code(kind));
  }
  return codes;
}

}  // namespace

std::variant<Proceed, UpdateReceipt, Refusal> Coordinator::CheckHead(const SiteId& site,
                                                                     const UpdateHead& head) {
  Job* job = FindJob(head.job);
  const Session* session = FindSession(site);
  if (job == nullptr) {
    return RefuseWith(Reason::kJobUnknown, head.job);
  }
  if (session == nullptr || head.instance != session->instance) {
    return RefuseWith(Reason::kInstance, head.job);
  }
  if (head.effective_policy != known_.at(site).policy.digests.effective) {
    return RefuseWith(Reason::kPolicyDigestMismatch, head.job);
  }
  // Before a byte of memory is set aside for it.
  const StatusOr<std::uint64_t> largest = updates::LargestUpdateBytes(*job->plan, head.key.phase);
  if (largest.ok() && head.size_bytes > *largest) {
    Refusal refusal = RefuseWith(Reason::kTooLarge, head.job);
    refusal.limit = *largest;
    refusal.found = head.size_bytes;
    return refusal;
  }
  // Before any signature is checked: the refusal says what to send instead, and costs little.
  const SubmissionAnswer answer = CheckSubmission(job->state, site, HeaderOf(head));
  if (answer.verdict == Verdict::kRefuse) {
    return RefusalOf(answer, head.job);
  }
  if (const Reason reason = CheckSiteDecision(site, head); reason != Reason::kNone) {
    return RefuseWith(reason, head.job);
  }
  if (answer.verdict == Verdict::kAccept) {
    return Proceed{};
  }
  StatusOr<UpdateReceipt> receipt = ReceiptOf(*job, site);
  if (!receipt.ok()) {
    LogError(std::string(Message(receipt.status())));
    return RefuseWith(Reason::kLogUnavailable, head.job);
  }
  return *std::move(receipt);
}

Reason Coordinator::CheckSiteDecision(const SiteId& site, const UpdateHead& head) {
  const contracts::RosterEntry& entry = known_.at(site).entry;
  const StatusOr<crypto::NoteVerifier> key = crypto::NoteVerifier::Parse(entry.log_key);
  if (!key.ok()) {
    return Reason::kLogHead;
  }
  const StatusOr<audit::CheckedLeaf> leaf = audit::CheckLeaf({.index = head.decision_index,
                                                              .leaf = head.decision_leaf,
                                                              .proof = head.decision_proof,
                                                              .head_note = head.decision_head},
                                                             *key);
  if (!leaf.ok()) {
    return Reason::kLogHead;
  }
  const StatusOr<audit::EgressDecided> decided = audit::ReadEgressDecided(leaf->leaf.event);
  // The epoch may differ: the same bytes, decided once, are sent again in a later one.
  if (!decided.ok() || decided->transfer != head.digest || decided->bytes != head.size_bytes ||
      decided->key.job != head.job || decided->key.round != head.key.round ||
      decided->key.phase != contracts::PhaseName(head.key.phase)) {
    return Reason::kLogHead;
  }
  // Who sends is what certificate and roster say; a leaf that says otherwise is no decision of it.
  if (decided->from.party != "site/" + site.text()) {
    return Reason::kClaimedIdentity;
  }
  return decided->from.jurisdiction == entry.jurisdiction ? Reason::kNone
                                                          : Reason::kJurisdictionMismatch;
}

std::variant<Proceed, UpdateReceipt, Refusal> Coordinator::BeginUpdate(const SiteId& site,
                                                                       const UpdateHead& head) {
  const MutexLock lock(mutex_);
  std::variant<Proceed, UpdateReceipt, Refusal> checked = CheckHead(site, head);
  if (std::holds_alternative<Proceed>(checked) && !uploads_.emplace(site, head.job).second) {
    checked = RefuseWith(Reason::kUploadInProgress, head.job);
  }
  if (const auto* refusal = std::get_if<Refusal>(&checked)) {
    LogRefused(site, head, 0, refusal->reason, nullptr);
  }
  return checked;
}

std::variant<UpdateReceipt, Refusal> Coordinator::FinishUpdate(const SiteId& site,
                                                               const UpdateHead& head,
                                                               ByteSpan update) {
  std::shared_ptr<const contracts::Plan> plan;
  UpdateExpectation expected;
  {
    const MutexLock lock(mutex_);
    const auto known = known_.find(site);
    Job* job = FindJob(head.job);
    if (job == nullptr || known == known_.end()) {
      uploads_.erase({site, head.job});
      return RefuseWith(Reason::kJobUnknown, head.job);
    }
    plan = job->plan;
    expected = {.job = head.job,
                .plan = job->plan_digest,
                .key = head.key,
                .base_model = head.base_model,
                .policy = known->second.policy.digests.effective};
  }
  // Shape, range and norm of every number, beside whatever else goes on.
  std::variant<CheckedUpdate, Refusal> checked = RefuseWith(Reason::kMalformed, head.job);
  if (StatusOr<UpdateChecker> checker = UpdateChecker::Create(*plan, head.key.phase);
      checker.ok()) {
    checked = checker->Check(update, expected);
  }

  const MutexLock lock(mutex_);
  uploads_.erase({site, head.job});
  std::variant<Proceed, UpdateReceipt, Refusal> still = CheckHead(site, head);
  if (auto* receipt = std::get_if<UpdateReceipt>(&still)) {
    return std::move(*receipt);
  }
  if (auto* refusal = std::get_if<Refusal>(&still)) {
    LogRefused(site, head, update.size(), refusal->reason, nullptr);
    return std::move(*refusal);
  }
  Job& job = *FindJob(head.job);
  if (auto* refusal = std::get_if<Refusal>(&checked)) {
    refusal->job = head.job;
    LogRefused(site, head, update.size(), refusal->reason, nullptr);
    if (refusal->reason == Reason::kNoExamples) {
      Apply(job,
            PhaseDeclined{
                .site = site, .key = head.key, .epoch = head.epoch, .reason = refusal->reason})
          .IgnoreError();  // logged there; the deadline ends the phase
    }
    return std::move(*refusal);
  }
  return Accept(job, site, head, std::get<CheckedUpdate>(checked), update.size());
}

std::variant<UpdateReceipt, Refusal> Coordinator::Accept(Job& job, const SiteId& site,
                                                         const UpdateHead& head,
                                                         const CheckedUpdate& checked,
                                                         std::uint64_t update_bytes) {
  const KnownSite& known = known_.at(site);
  const Decided decided = DecideIngress(known.policy, *job.plan, head.key.phase, BorderOf(known),
                                        update_bytes, checked.numbers, clock_.Now());
  if (!decided.Allowed()) {
    LogRefused(site, head, update_bytes, decided.decision.Why(), &decided.record);
    return RefuseWith(decided.decision.Why(), head.job);
  }
  const auto receive = [&]() REQUIRES(mutex_) -> StatusOr<UpdateReceipt> {
    ASSIGN_OR_RETURN(const std::uint64_t leaf_index, log_->Size());
    ASSIGN_OR_RETURN(const audit::Event leaf,
                     ToEvent(audit::IngressReceived{.key = LogKey(job.id, head.key, head.epoch),
                                                    .site = site,
                                                    .jurisdiction = known.entry.jurisdiction,
                                                    .digest = head.digest,
                                                    .bytes = update_bytes,
                                                    .kinds = KindCodes(*job.plan, head.key.phase),
                                                    .capacity_bits = checked.capacity_bits,
                                                    .decision = decided.record}));
    const UpdateReceived event{.site = site,
                               .key = head.key,
                               .epoch = head.epoch,
                               .digest = head.digest,
                               .weight = checked.manifest.weight,
                               .leaf = leaf_index};
    UpdateReceipt receipt{.epoch = head.epoch, .digest = head.digest, .leaf = {}};
    Status proven = OkStatus();
    // Folded, and its proof taken, before the actions run: they may commit this very sum.
    RETURN_IF_ERROR(Apply(job, event, {leaf}, {}, [&]() REQUIRES(mutex_) {
      job.sum->Add(checked);
      StatusOr<audit::ProvenLeaf> leaf_proof = log_->LeafWithProof(leaf_index);
      proven = leaf_proof.status();
      if (leaf_proof.ok()) {
        receipt.leaf = *std::move(leaf_proof);
      }
    }));
    RETURN_IF_ERROR(proven);
    return receipt;
  };
  StatusOr<UpdateReceipt> receipt = receive();
  if (!receipt.ok()) {
    LogError("receiving an update of `" + site.text() +
             "`: " + std::string(Message(receipt.status())));
    return RefuseWith(receipt.status().code() == StatusCode::kResourceExhausted
                          ? Reason::kDiskFull
                          : Reason::kLogUnavailable,
                      head.job);
  }
  return *std::move(receipt);
}

StatusOr<UpdateReceipt> Coordinator::ReceiptOf(Job& job, const SiteId& site) {
  const CurrentPhase& current = *job.state.current;
  const Participation& mine = current.participants.at(site);
  UpdateReceipt receipt{.epoch = current.epoch, .digest = mine.digest, .leaf = {}};
  ASSIGN_OR_RETURN(receipt.leaf, log_->LeafWithProof(mine.leaf));
  return receipt;
}

void Coordinator::AbortUpdate(const SiteId& site, const UpdateHead& head,
                              std::uint64_t received_bytes) {
  const MutexLock lock(mutex_);
  uploads_.erase({site, head.job});
  const auto known = known_.find(site);
  if (FindJob(head.job) == nullptr || known == known_.end()) {
    return;
  }
  AppendLeaf(audit::EventBuilder(audit::EventType::kIngressPartial)
                 .Phase(LogKey(head.job, head.key, head.epoch))
                 .Set("site", site)
                 .Set("jurisdiction", known->second.entry.jurisdiction)
                 .Set("digest", head.digest)
                 .Set("bytes", received_bytes)
                 .Set("reason", std::string(policy::Code(Reason::kConnectionLost)))
                 .Build())
      .IgnoreError();  // nothing was received; the site logs its own side
}

void Coordinator::RefuseUpdate(const SiteId& site, const UpdateHead& head,
                               std::uint64_t received_bytes, Reason reason) {
  const MutexLock lock(mutex_);
  uploads_.erase({site, head.job});
  LogRefused(site, head, received_bytes, reason, nullptr);
}

// The first refusal of its kind is a leaf of its own; repeats are counted and written as one leaf a
// minute, so that a peer that insists cannot fill the disk.
void Coordinator::LogRefused(const SiteId& site, const UpdateHead& head, std::uint64_t bytes,
                             Reason reason, const audit::DecisionRecord* decision) {
  const auto write = [this](const SiteId& from, const UpdateHead& of, std::uint64_t size,
                            Reason why, const audit::DecisionRecord* record,
                            std::uint64_t count) REQUIRES(mutex_) {
    audit::EventBuilder builder(audit::EventType::kIngressRefused);
    builder.Set("site", from).Set("job", of.job).Set("digest", of.digest).Set("bytes", size);
    if (of.key.round > 0 && of.key.phase != PhaseKind::kNone && of.epoch.attempt > 0) {
      builder.Phase(LogKey(of.job, of.key, of.epoch));
    }
    if (const auto known = known_.find(from); known != known_.end()) {
      builder.Set("jurisdiction", known->second.entry.jurisdiction);
    }
    builder.Set("reason", std::string(policy::Code(why)));
    if (record != nullptr) {
      builder.Set("decision", ToJson(*record));
    }
    if (count > 1) {
      builder.Set("count", count);
    }
    const Status written = AppendLeaf(builder.Build());
    if (!written.ok()) {
      LogError("logging a refusal: " + std::string(Message(written)));
    }
  };
  LogInfo("site `" + site.text() + "`: update refused, " + std::string(policy::Code(reason)));
  // Of a closed list of kinds, whatever the peer writes for job and round.
  const Job* const job = FindJob(head.job);
  const bool planned = job != nullptr && head.key.round <= job->plan->rounds.count;
  const std::string kind = site.text() + "/" + (job == nullptr ? "" : head.job.text()) + "/" +
                           (planned ? std::to_string(head.key.round) : "") + "/" +
                           std::string(contracts::PhaseName(head.key.phase)) + "/" +
                           std::string(policy::Code(reason));
  if (const auto found = repeated_refusals_.find(kind); found != repeated_refusals_.end()) {
    ++found->second;
    return;
  }
  repeated_refusals_[kind] = 0;
  write(site, head, bytes, reason, decision, 1);
  timers_.Arm("refusals/" + kind, clock_.Monotonic() + std::chrono::minutes(1),
              [this, kind, site, head, reason, write] {
                const MutexLock lock(mutex_);
                const auto found = repeated_refusals_.find(kind);
                if (found == repeated_refusals_.end()) {
                  return;
                }
                if (found->second > 0) {
                  write(site, head, 0, reason, nullptr, found->second);
                }
                repeated_refusals_.erase(found);
              });
}

}  // namespace domicile::aggregator
