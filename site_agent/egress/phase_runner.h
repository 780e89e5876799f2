// The work of an open phase, on a thread of its own: model intake, training by
// the trainer service, the gate, the outbox, sending. One phase at a time.
//
// The gate runs once for each (job, round, phase). What is in the outbox is
// sent, again and again if it must be, until its outcome is known; what is not
// has never left, and is made anew after a crash.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "audit/event.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "contracts/identity.h"
#include "contracts/plan.h"
#include "policy/reason.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/config.h"
#include "site_agent/egress/connection.h"
#include "site_agent/egress/grants.h"
#include "site_agent/egress/outbox.h"
#include "site_agent/egress/trainer_link.h"

namespace domicile::site_agent {

// What an agent consists of. Borrowed; outlives everything that works with it.
struct Site {
  const AgentConfig& config;
  const contracts::Identity& identity;
  SiteId id;
  Books& books;
  TrainerLink& trainer;
  CurrentConnection& current;
  const Clock& clock;
};

// A phase as its verified opening says.
struct OpenedPhase {
  PhaseId id;
  Epoch epoch;
  Digest model;
  std::uint64_t model_bytes = 0;
  std::vector<SiteId> participants;  // sorted
  std::chrono::steady_clock::time_point deadline;
};

// What is known of a job when its phase is worked on.
struct JobAtHand {
  JobRow row;
  contracts::Plan plan;
  Digest plan_digest;
  Digest dataset_commitment;
  FoundGrant grant;
};

// The body that a grant must have to cover this job now.
contracts::GrantBody WantedGrant(const Site& site, const Terms& terms, const JobRow& row,
                                 const contracts::Plan& plan, const HelloMessage& trainer);

// The grant that covers `wanted` now. A job that was denied, or whose run is over, has none any
// more, whatever lies in the folder. `why` as of FindGrant, and kApprovalDenied, kGrantUsed.
StatusOr<std::optional<FoundGrant>> GrantFor(const Site& site, const Terms& terms,
                                             const contracts::GrantBody& wanted,
                                             policy::Reason& why);

// What the gate is told of a job: grant with its approvals (null: none yet), trainer, ledger.
StatusOr<JobBorder> BorderOfJob(const Site& site, const Terms& terms, const contracts::Plan& plan,
                                const PhaseId& phase, const FoundGrant* grant);

// Thread-safe.
class PhaseRunner {
 public:
  explicit PhaseRunner(const Site& site) : site_(site) {}
  ~PhaseRunner();  // cancels and joins

  // Begins a phase. The same phase again (a new epoch, or after a new
  // connection): the work under way goes on and sends for the new epoch.
  // Another phase: the old work is cancelled first; a receipt that is on its
  // way is waited for, since the aggregator may open the next phase before its
  // answer to the last update has arrived.
  void Begin(OpenedPhase phase);
  // The outcome of this phase, or of the job's life, is known.
  void Cancel(const JobId& job);

 private:
  void Run(const std::stop_token& stop);
  // This site has no update for the phase, and says why.
  void Decline(const OpenedPhase& phase, policy::Reason reason);
  // One pass of work for the phase as it is now: why it cannot go on, or kNone.
  policy::Reason MakeAndSend(const OpenedPhase& phase, const std::stop_token& stop);

  // produce.cc: from the model to the outbox
  std::variant<OutboxRow, policy::Reason> Produce(const OpenedPhase& phase,
                                                  const std::shared_ptr<Connection>& connection,
                                                  const std::stop_token& stop);
  std::variant<JobAtHand, policy::Reason> FindJobAtHand(const OpenedPhase& phase,
                                                        const Terms& terms);
  std::variant<Bytes, policy::Reason> TakeModel(const OpenedPhase& phase, const JobAtHand& job,
                                                Connection& connection,
                                                const std::stop_token& stop);
  std::variant<Bytes, policy::Reason> FetchModel(const Digest& digest, std::uint64_t size,
                                                 const OpenedPhase& phase, Connection& connection,
                                                 const std::stop_token& stop);
  policy::Reason OpenData(const OpenedPhase& phase, const JobAtHand& job, const Terms& terms,
                          policy::Obligations& obligations);
  std::variant<TaskResult, policy::Reason> Train(const OpenedPhase& phase, const JobAtHand& job,
                                                 const Terms& terms, const Bytes& model,
                                                 const std::stop_token& stop);
  std::variant<OutboxRow, policy::Reason> PassGate(const OpenedPhase& phase, const JobAtHand& job,
                                                   const Terms& terms, const TaskResult& result,
                                                   const policy::Obligations& obligations,
                                                   const std::stop_token& stop);

  // kNone: the outbox's file is still what the gate let through.
  policy::Reason CheckBytes(const OutboxRow& row) const;

  // submit.cc: from the outbox to the receipt
  policy::Reason Submit(const OpenedPhase& phase, const OutboxRow& row, Connection& connection,
                        const std::stop_token& stop);
  // Decided again, under the policy and the grants of now.
  std::variant<policy::Permit, policy::Reason> DecideAgain(const OpenedPhase& phase,
                                                           const OutboxRow& row,
                                                           const Terms& terms);
  // Between the leaves before the first byte and after the last. kNone with the
  // receipt's leaf.
  policy::Reason Send(const OpenedPhase& phase, const OutboxRow& row, Connection& connection,
                      const std::stop_token& stop, std::uint64_t& sent_bytes,
                      std::uint64_t& receipt_leaf);

  Status LogDenied(const OpenedPhase& phase, const contracts::Plan& plan, const Terms& terms,
                   const audit::DecisionRecord& decision);

  const Site& site_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool sending_ GUARDED_BY(mutex_) = false;  // between `egress.intent` and the leaf after it
  std::optional<OpenedPhase> phase_ GUARDED_BY(mutex_);  // set while there is work
  std::uint64_t generation_ GUARDED_BY(mutex_) = 0;      // of phase_; grows with each Begin
  std::jthread thread_ GUARDED_BY(mutex_);
};

audit::PartyPlace SitePlace(const Terms& terms);
audit::PartyPlace AggregatorPlace(const Terms& terms);
std::vector<std::string> KindCodes(const contracts::Plan& plan, contracts::PhaseKind phase);

}  // namespace domicile::site_agent
