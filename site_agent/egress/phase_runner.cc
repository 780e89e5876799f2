#include "site_agent/egress/phase_runner.h"

#include <algorithm>
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"
#include "site_agent/egress/wire_words.h"
#include "wire/shared_bytes.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

constexpr std::chrono::hours kDay{24};

// After these the same bytes are simply sent again, for the epoch that is open then.
bool IsTransient(Reason reason) {
  return reason == Reason::kConnectionLost || reason == Reason::kWrongEpoch ||
         reason == Reason::kUploadInProgress || reason == Reason::kBusy ||
         reason == Reason::kInstance;
}

// A disk that is full, here or at the aggregator, is perhaps being emptied: so long the work is
// tried again before the phase is declined, and the round goes on without this site.
constexpr std::chrono::seconds kDiskGrace{30};
constexpr std::chrono::seconds kDiskRetry{1};

// A receipt that is on its way gets this long before the work of its phase is cancelled.
constexpr std::chrono::seconds kReceiptGrace{2};

std::string Describe(const OpenedPhase& phase, Reason reason) {
  return "round " + std::to_string(phase.id.round) + " of job `" + phase.id.job.text() +
         "`: " + std::string(policy::Code(reason)) + ", " + std::string(policy::Explain(reason));
}

}  // namespace

audit::PartyPlace SitePlace(const Terms& terms) {
  return {.party = "site/" + terms.site.name, .jurisdiction = terms.site.jurisdiction};
}

audit::PartyPlace AggregatorPlace(const Terms& terms) {
  return {.party = "aggregator/" + terms.aggregator.name,
          .jurisdiction = terms.aggregator.jurisdiction};
}

std::vector<std::string> KindCodes(const contracts::Plan& plan, contracts::PhaseKind phase) {
  std::vector<std::string> codes;
  for (const policy::UpdateKind kind : contracts::KindsOf(plan, phase)) {
    codes.emplace_back(policy::Code(kind));
  }
  return codes;
}

contracts::GrantBody WantedGrant(const Site& site, const Terms& terms, const JobRow& row,
                                 const contracts::Plan& plan, const HelloMessage& trainer) {
  contracts::GrantBody wanted;
  wanted.federation = site.identity.Name().federation;
  wanted.site = site.id;
  wanted.job = row.job;
  wanted.plan = crypto::Sha256(AsBytes(row.plan));
  wanted.trainer = trainer.trainer;
  wanted.base_model = row.base_model;
  wanted.dataset = plan.dataset;
  for (const DatasetFact& dataset : trainer.datasets) {
    if (dataset.alias == plan.dataset) {
      wanted.dataset_commitment = dataset.commitment;
    }
  }
  wanted.effective_policy = terms.policies.digests.effective;
  return wanted;
}

StatusOr<std::optional<FoundGrant>> GrantFor(const Site& site, const Terms& terms,
                                             const contracts::GrantBody& wanted, Reason& why) {
  ASSIGN_OR_RETURN(why,
                   site.books.With([&](SiteStore& store) { return store.WhyClosed(wanted.job); }));
  if (why != Reason::kNone) {
    return std::nullopt;
  }
  // The agent puts denials into its books; one that it has not got to yet counts as well.
  ASSIGN_OR_RETURN(const std::vector<JobId> denied, FindDenials(site.config.grants));
  if (std::find(denied.begin(), denied.end(), wanted.job) != denied.end()) {
    why = Reason::kApprovalDenied;
    return std::nullopt;
  }
  return FindGrant(site.config.grants, site.config.approval.OnlyNamed(terms.policies.approver_keys),
                   wanted, site.clock.Now(), why);
}

StatusOr<JobBorder> BorderOfJob(const Site& site, const Terms& terms, const contracts::Plan& plan,
                                const PhaseId& phase, const FoundGrant* grant) {
  JobBorder border{.site = terms.site,
                   .aggregator = terms.aggregator,
                   .roster = terms.roster,
                   .approvals = {},
                   .grant = {},
                   .trainer = {},
                   .sandbox = policy::SandboxNetwork::kUnset,
                   .released_per_record = 0,
                   .epsilon_spent = {},
                   .runs_today = 0,
                   .clock_skew = terms.clock_skew};
  if (grant != nullptr) {
    border.approvals = grant->approvals;
    border.grant = {.id = PrintHex(grant->digest),
                    .dataset = grant->body.dataset,
                    .plan = PrintHex(grant->body.plan),
                    .trainer = PrintHex(grant->body.trainer),
                    .not_after = grant->body.not_after};
  }
  if (const std::optional<HelloMessage> trainer = site.trainer.Facts()) {
    border.sandbox = NetworkOf(*trainer);
    border.trainer = trainer->trainer;
  }
  const policy::Duration window = terms.policies.effective.BudgetWindow(plan.dataset);
  const std::optional<WallTime> since =
      window == policy::kLifeOfDataset ? std::nullopt : std::optional(site.clock.Now() - window);
  RETURN_IF_ERROR(site.books.With([&](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(border.epsilon_spent, store.EpsilonSpent(plan.dataset, since, phase.job));
    ASSIGN_OR_RETURN(border.released_per_record, store.ReleasedPerRecord(plan.dataset, phase));
    ASSIGN_OR_RETURN(const std::uint64_t others,
                     store.RunsSince(plan.dataset, site.clock.Now() - kDay, phase.job));
    border.runs_today = others + 1;  // this job's own run
    return OkStatus();
  }));
  return border;
}

PhaseRunner::~PhaseRunner() {
  std::jthread thread;
  {
    const MutexLock lock(mutex_);
    phase_.reset();
    thread = std::move(thread_);
  }
  thread.request_stop();
  changed_.notify_all();
}

void PhaseRunner::Begin(OpenedPhase phase) {
  std::jthread old;
  {
    const MutexLock lock(mutex_);
    ++generation_;
    if (phase_ && phase_->id == phase.id) {
      phase_ = std::move(phase);  // the work under way sends for the new epoch
      changed_.notify_all();
      return;
    }
    changed_.wait_for(mutex_, kReceiptGrace, [this] { return !sending_; });
    old = std::move(thread_);
    phase_.reset();
  }
  old.request_stop();
  changed_.notify_all();
  if (old.joinable()) {
    old.join();
  }
  const MutexLock lock(mutex_);
  phase_ = std::move(phase);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void PhaseRunner::Cancel(const JobId& job) {
  const MutexLock lock(mutex_);
  if (phase_ && phase_->id.job == job) {
    // The job may have ended by the very update whose receipt is on its way.
    changed_.wait_for(mutex_, kReceiptGrace, [this] { return !sending_; });
    phase_.reset();
    thread_.request_stop();
    changed_.notify_all();
  }
}

void PhaseRunner::Run(const std::stop_token& stop) {
  bool was_full = false;  // at the last try, and until when it is tried again
  std::chrono::steady_clock::time_point give_up;
  while (!stop.stop_requested()) {
    OpenedPhase phase;
    std::uint64_t generation = 0;
    {
      const MutexLock lock(mutex_);
      if (!phase_) {
        return;
      }
      phase = *phase_;
      generation = generation_;
    }
    const Reason reason = MakeAndSend(phase, stop);
    if (reason != Reason::kDiskFull) {
      was_full = false;
    } else if (!was_full) {
      was_full = true;
      give_up = std::chrono::steady_clock::now() + kDiskGrace;
      LogWarning(Describe(phase, reason) + " It is tried again for " +
                 std::to_string(kDiskGrace.count()) + " s.");
    }
    const bool again = was_full && std::chrono::steady_clock::now() < give_up;
    if (!again && reason != Reason::kNone && !IsTransient(reason) && !stop.stop_requested()) {
      Decline(phase, reason);
    }
    const MutexLock lock(mutex_);
    if (stop.stop_requested() || !phase_) {
      return;
    }
    if (generation_ != generation) {
      continue;  // a new epoch came meanwhile: send for it
    }
    if (again) {
      changed_.wait_for(mutex_, stop, kDiskRetry,
                        [&]() { return generation_ != generation || !phase_; });
      continue;
    }
    if (!IsTransient(reason)) {
      phase_.reset();
      return;
    }
    // Sent in vain: the next opening of this phase, on this or the next connection, tries again.
    changed_.wait(mutex_, stop, [&]() { return generation_ != generation; });
  }
}

void PhaseRunner::Decline(const OpenedPhase& phase, Reason reason) {
  LogWarning(Describe(phase, reason));
  if (const std::shared_ptr<Connection> current = site_.current.Find()) {
    // Not sent is no harm: the deadline says it too.
    current->control->Send(DeclinePhase(phase.id, phase.epoch, reason)).IgnoreError();
  }
}

Reason PhaseRunner::MakeAndSend(const OpenedPhase& phase, const std::stop_token& stop) {
  const std::shared_ptr<Connection> connection = site_.current.Find();
  if (!connection) {
    return Reason::kConnectionLost;
  }
  const StatusOr<bool> closed =
      site_.books.With([&](SiteStore& store) { return store.IsClosed(phase.id); });
  StatusOr<std::optional<OutboxRow>> stored =
      site_.books.With([&](SiteStore& store) { return store.FindOutbox(phase.id); });
  if (!closed.ok() || !stored.ok()) {
    return Reason::kLogUnavailable;
  }
  if (*closed) {
    return Reason::kStaleRound;  // nothing is trained for what may not leave
  }
  if (!*stored) {
    std::variant<OutboxRow, Reason> made = Produce(phase, connection, stop);
    if (const auto* why = std::get_if<Reason>(&made)) {
      return *why;
    }
    *stored = std::get<OutboxRow>(std::move(made));
  } else if (const Reason reason = CheckBytes(**stored); reason != Reason::kNone) {
    return reason;
  }
  // Perhaps of a newer epoch, or on a newer connection, than when the work began.
  OpenedPhase now = phase;
  {
    const MutexLock lock(mutex_);
    if (phase_ && phase_->id == phase.id) {
      now = *phase_;
    }
  }
  const std::shared_ptr<Connection> current = site_.current.Find();
  return current ? Submit(now, **stored, *current, stop) : Reason::kConnectionLost;
}

// Only the bytes that were let through may leave, and these have lain on a disk.
Reason PhaseRunner::CheckBytes(const OutboxRow& row) const {
  const std::string path =
      site_.books.With([&](SiteStore& store) { return store.OutboxPath(row.digest); });
  const StatusOr<wire::SharedBytes> bytes = wire::MapFile(path);
  if (!bytes.ok()) {
    LogError(std::string(Message(bytes.status())));
    return StorageReason(bytes.status());
  }
  if (crypto::TreeDigest(bytes->bytes) == row.digest) {
    return Reason::kNone;
  }
  LogError("`" + path + "` is not what was let through, and is not sent");
  return Reason::kDigestMismatch;
}

Status PhaseRunner::LogDenied(const OpenedPhase& phase, const contracts::Plan& plan,
                              const Terms& terms, const audit::DecisionRecord& decision) {
  return site_.books
      .Append(audit::EventBuilder(audit::EventType::kEgressDenied)
                  .Phase(LogKey(phase.id, phase.epoch))
                  .Set("kinds", KindCodes(plan, phase.id.phase))
                  .Set("dataset", plan.dataset)
                  .Set("from", ToJson(SitePlace(terms)))
                  .Set("to", ToJson(AggregatorPlace(terms)))
                  .Set("decision", ToJson(decision))
                  .Build())
      .status();
}

}  // namespace domicile::site_agent
