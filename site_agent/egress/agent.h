// The site agent: keeps a connection to the aggregator, answers offers, works on phases, verifies
// outcomes. Everything that leaves the site leaves through here.
//
// One thread (Run) handles what the aggregator says, in order; PhaseRunner has its own.
#pragma once

#include <atomic>
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
#include "contracts/in_force/policy_keeper.h"
#include "site_agent/egress/agent_events.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/config.h"
#include "site_agent/egress/connection.h"
#include "site_agent/egress/gate.h"
#include "site_agent/egress/grants.h"
#include "site_agent/egress/phase_runner.h"
#include "site_agent/egress/policy_books.h"
#include "site_agent/egress/trainer_link.h"
#include "wire/client.h"

namespace domicile::site_agent {

// How a policy file is read while the agent runs, from behind its walls.
using ReadPolicyFile = std::function<StatusOr<std::string>(const std::string& file)>;

class Agent {
 public:
  // Opens the books, checks the log, waits for nothing. Clock, randomness and what `read` needs
  // outlive the agent. Errors: those of Books::Open, FolderWatch::Start.
  static StatusOr<std::unique_ptr<Agent>> Open(AgentConfig config, contracts::Identity identity,
                                               std::string version, ReadPolicyFile read,
                                               const Clock& clock, Random& random);
  ~Agent();

  // Looks at the policy files again, soon. Thread-safe.
  void AskReload();

  // Works until a stop is requested (OK), or until something is wrong that only a person can mend:
  // a log that is not what was witnessed, a policy that differs, an older copy of this agent. A
  // connection that fails is made again. `ready` is called once, when the aggregator has said
  // welcome for the first time.
  Status Run(const std::stop_token& stop, const std::function<void()>& ready);

 private:
  Agent(AgentConfig config, contracts::Identity identity, std::string version, const Clock& clock);
  Status LogStart();
  Status WaitForTrainer(const std::stop_token& stop);
  // Until the time has passed, a stop is requested, or somebody asks to look at the policies.
  void WaitToComeBack(std::chrono::milliseconds time, const std::stop_token& stop);
  // Looks at the policy files if somebody asked, or if one that waits is due. kUnavailable if what
  // is in force has changed: the next connection states it.
  Status LookAtPolicies();

  // session.cc: one connection
  Status RunConnection(const std::stop_token& stop, const std::function<void()>& ready);
  wire::ClientOptions OptionsForAggregator() const;
  StatusOr<std::shared_ptr<Connection>> Connect(const std::stop_token& stop);
  Status TakeEvent(const AgentEvent& event, const std::shared_ptr<Connection>& connection,
                   const std::function<void()>& ready);
  StatusOr<v1::SiteMessage> MakeHello();
  Status TakeWelcome(const v1::Welcome& welcome, Connection& connection);
  Status CheckEnrolment(const Terms& terms);
  Status TakeStarts(const v1::Welcome& welcome, const Terms& terms);
  Status TakeRoster(const v1::Welcome& welcome, Terms& terms);
  Status CheckHistories(const v1::Welcome& welcome, const Terms& terms);
  Status TakeHeads(const v1::Heads& heads, const Terms& terms);
  Status SendHeartbeat(Connection& connection);
  // The leaf over the control messages of this connection since the last such leaf.
  Status LogControl(const Connection& connection);
  Status Handle(const v1::Directive& directive, Connection& connection);

  // offers.cc
  Status TakeOffer(const v1::JobOffer& offer, Connection& connection);
  Status AnswerOffer(const JobRow& row, Connection& connection);
  struct OfferAtHand;
  Status Decline(const OfferAtHand& offer, policy::Reason reason, const Decided* decided);
  Status Hold(const OfferAtHand& offer, policy::Reason why, const Decided& decided);
  Status Accept(const OfferAtHand& offer, const FoundGrant& grant, const Decided& decided);
  Status AnswerHeld(Connection& connection);
  Status TakeDenials(Connection* connection);  // null: there is none

  // outcomes.cc
  Status TakeOpening(const v1::OpenPhase& open, Connection& connection);
  Status TakeOutcome(const v1::PhaseOutcome& outcome, Connection& connection);
  Status TakeJobEnd(const v1::JobEnded& ended);

  // Fixed after construction; site_ borrows the others.
  const AgentConfig config_;
  const contracts::Identity identity_;
  const std::string version_;
  const Clock& clock_;
  std::atomic<bool> reload_asked_ = false;
  std::unique_ptr<Books> books_;
  TrainerLink trainer_;
  CurrentConnection current_;
  std::unique_ptr<Site> site_;
  AgentEvents events_;
  std::unique_ptr<PhaseRunner> runner_;
  std::unique_ptr<FolderWatch> grants_watch_;

  // Run's thread only.
  std::optional<SitePolicyBooks> policy_books_;
  std::optional<contracts::PolicyKeeper> keeper_;
  OwnPolicies policies_;              // in force
  std::set<JobId> held_;              // offers that wait for an approval
  std::uint64_t witnessed_size_ = 0;  // of this log, by the aggregator
  bool was_ready_ = false;
  std::chrono::seconds come_back_after_{0};  // as the last goodbye asked
  MonotonicTime summed_at_;                  // control messages are in the log's sums up to here
  wire::ControlTally summed_;
};

}  // namespace domicile::site_agent
