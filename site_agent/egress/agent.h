// The site agent: keeps a connection to the aggregator, answers offers, works on phases, verifies
// outcomes. Everything that leaves the site leaves through here.
//
// One thread (Run) handles what the aggregator says, in order; PhaseRunner has its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "contracts/identity.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/config.h"
#include "site_agent/egress/connection.h"
#include "site_agent/egress/gate.h"
#include "site_agent/egress/grants.h"
#include "site_agent/egress/phase_runner.h"
#include "site_agent/egress/trainer_link.h"
#include "wire/client.h"

namespace domicile::site_agent {

// What the session waits for.
struct GrantsChanged {};
struct StreamClosed {
  Status why;
};
using AgentEvent = std::variant<v1::Directive, StreamClosed, GrantsChanged>;

// Thread-safe queue of them.
class AgentEvents {
 public:
  void Push(AgentEvent event);
  // The next event; empty when `until` has passed or a stop is requested.
  std::optional<AgentEvent> Next(std::chrono::steady_clock::time_point until,
                                 const std::stop_token& stop);
  void Clear();

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<AgentEvent> events_ GUARDED_BY(mutex_);
};

class Agent {
 public:
  // Opens the books, checks the log, waits for nothing. Clock and randomness outlive the agent.
  // Errors: those of Books::Open, FolderWatch::Start.
  static StatusOr<std::unique_ptr<Agent>> Open(AgentConfig config, contracts::Identity identity,
                                               OwnPolicies policies, std::string version,
                                               const Clock& clock, Random& random);
  ~Agent();

  // Works until a stop is requested (OK), or until something is wrong that only a person can mend:
  // a log that is not what was witnessed, a policy that differs, an older copy of this agent. A
  // connection that fails is made again. `ready` is called once, when the aggregator has said
  // welcome for the first time.
  Status Run(const std::stop_token& stop, const std::function<void()>& ready);

 private:
  Agent(AgentConfig config, contracts::Identity identity, OwnPolicies policies, std::string version,
        const Clock& clock);
  Status LogStart();
  Status WaitForTrainer(const std::stop_token& stop);

  // session.cc: one connection
  Status RunConnection(const std::stop_token& stop, const std::function<void()>& ready);
  StatusOr<v1::SiteMessage> MakeHello();
  Status TakeWelcome(const v1::Welcome& welcome, Connection& connection);
  Status TakeHeads(const v1::Heads& heads, const Terms& terms);
  Status SendHeartbeat(Connection& connection);
  Status Handle(const v1::Directive& directive, Connection& connection);

  // offers.cc
  Status TakeOffer(const v1::JobOffer& offer, Connection& connection);
  Status AnswerOffer(const JobRow& row, Connection& connection);
  Status AnswerHeld(Connection& connection);

  // outcomes.cc
  Status TakeOpening(const v1::OpenPhase& open, Connection& connection);
  Status TakeOutcome(const v1::PhaseOutcome& outcome, Connection& connection);
  Status TakeCommit(const PhaseId& id, std::uint64_t leaf_index,
                    const audit::PhaseCommitted& commit);
  Status TakeJobEnd(const v1::JobEnded& ended);
  Status DropUpdate(const OutboxRow& row, const audit::PhaseKey& key, policy::Reason reason,
                    std::optional<std::uint64_t> commit_leaf);

  // Fixed after construction; site_ borrows the others.
  const AgentConfig config_;
  const contracts::Identity identity_;
  const OwnPolicies policies_;
  const std::string version_;
  const Clock& clock_;
  std::unique_ptr<Books> books_;
  TrainerLink trainer_;
  CurrentConnection current_;
  std::unique_ptr<Site> site_;
  AgentEvents events_;
  std::unique_ptr<PhaseRunner> runner_;
  std::unique_ptr<FolderWatch> grants_watch_;

  // Run's thread only.
  std::set<JobId> held_;              // offers that wait for an approval
  std::uint64_t witnessed_size_ = 0;  // of this log, by the aggregator
  bool was_ready_ = false;
};

// A leaf of the aggregator's log as it came over the wire, verified. Errors as audit::CheckLeaf.
StatusOr<audit::CheckedLeaf> CheckWireLeaf(const v1::LoggedLeaf& leaf,
                                           const crypto::NoteVerifier& key);

}  // namespace domicile::site_agent
