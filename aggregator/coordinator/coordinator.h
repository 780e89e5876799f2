// The state around the round machines: who is connected, the jobs, their sums, the store and the
// log.
//
// Every event of a job goes one way (Apply): the machine steps on a copy; event, rows and log
// leaves are one transaction; then the state is taken over and the actions are carried out. A
// transaction that fails changes nothing, in memory or on disk.
//
// Thread-safe: one mutex over everything. Checks and digests of updates run outside it; folding and
// committing run inside it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "aggregator/coordinator/gate.h"
#include "aggregator/coordinator/job.h"
#include "aggregator/coordinator/messages.h"
#include "aggregator/coordinator/policy_books.h"
#include "aggregator/coordinator/store.h"
#include "aggregator/coordinator/timers.h"
#include "aggregator/rounds/submission.h"
#include "audit/log.h"
#include "audit/peer_heads.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "contracts/identity.h"
#include "crypto/certificate.h"
#include "models/plans/pretrained.h"

namespace domicile::aggregator {

struct CoordinatorOptions {
  std::string state_folder;
  std::uint64_t max_update_bytes = 0;
  std::string version;  // of the program, for the log
  contracts::PolicyKeeperOptions policies = {};
  models::PretrainedModels pretrained{};  // what first models may come from
};

// Begin said: send the bytes.
struct Proceed {};

class Coordinator {
 public:
  // Opens the store, checks the log, looks at the policies, rebuilds the jobs and opens their
  // phases again in a new epoch. Clock and randomness outlive it. Errors: those of Store::Open,
  // audit::Log::Open, PolicyKeeper::Look.
  static StatusOr<std::unique_ptr<Coordinator>> Open(CoordinatorOptions options,
                                                     contracts::Identity identity,
                                                     const Clock& clock, Random& random);
  ~Coordinator();

  // ---- sites; `peer` is who the certificate says ----

  // Admits a site, in place of an older instance of itself. The welcome must be sent before
  // anything pushed through the port: the caller pushes it, then calls Joined.
  std::variant<Welcome, Refusal> Connect(const crypto::PeerIdentity& peer, const SiteHello& hello,
                                         std::shared_ptr<SitePort> port);
  // A greeting that was turned away unread, for the log.
  void RefuseGreeting(const crypto::PeerIdentity& peer, policy::Reason reason);
  // Offers and open phases follow through the port. `pending`: updates whose outcome it asks for.
  void Joined(const SiteId& site, std::span<const std::pair<JobId, PhaseKey>> pending);
  // The stream of this port has ended.
  void Disconnected(const SiteId& site, const SitePort* port);

  void ReplyToOffer(const SiteId& site, const OfferReply& reply);
  void DeclinePhase(const SiteId& site, const JobId& job, const PhaseKey& key, const Epoch& epoch,
                    policy::Reason reason);
  void ReportProgress(const SiteId& site, const JobId& job, const PhaseKey& key,
                      std::uint32_t percent);
  // A head of the site's log, with the proof from the last one seen. A head that does not extend it
  // is logged and the site is cut off.
  void WitnessHead(const SiteId& site, const std::string& note, std::span<const Digest> proof);

  // The file of a model that this site may have now. The decision is logged first. Errors:
  // kPermissionDenied, kNotFound.
  StatusOr<std::string> OpenModel(const SiteId& site, const Digest& digest);

  std::variant<Proceed, UpdateReceipt, Refusal> BeginUpdate(const SiteId& site,
                                                            const UpdateHead& head);
  std::variant<UpdateReceipt, Refusal> FinishUpdate(const SiteId& site, const UpdateHead& head,
                                                    ByteSpan update);
  // The upload is whole, and refused by what was seen while it came.
  void RefuseUpdate(const SiteId& site, const UpdateHead& head, std::uint64_t received_bytes,
                    policy::Reason reason);
  // The upload ended before its end, with so many bytes here.
  void AbortUpdate(const SiteId& site, const UpdateHead& head, std::uint64_t received_bytes);

  struct Proof {
    std::string head;
    std::vector<Digest> proof;
  };
  StatusOr<Proof> ProveConsistency(std::uint64_t first_size);

  // ---- people ----

  // Errors: kInvalidArgument, with file, line and column.
  StatusOr<JobView> Submit(std::string_view operator_name, std::string_view job_file,
                           std::string_view file_name);
  std::vector<JobView> List();
  // What a person sees of a job. Its metrics are there only if every contributor's policy shows
  // them to this person: decided, and logged before they are shown. kNotFound.
  StatusOr<JobView> Show(std::string_view operator_name, const JobId& job);
  // The same, as soon as `change` differs from `seen`, or after `timeout`.
  StatusOr<JobView> WaitForChange(std::string_view operator_name, const JobId& job,
                                  std::uint64_t seen, std::chrono::milliseconds timeout);
  Status Cancel(std::string_view operator_name, const JobId& job);
  struct ReleasedModel {
    ModelRow model;
    std::string path;
  };
  // Decided for every contributor and logged before it returns.
  StatusOr<std::variant<ReleasedModel, Refusal>> ReleaseModel(std::string_view operator_name,
                                                              const JobId& job, RoundNumber round);

  // ---- the program ----

  // Looks at the policy files again (PolicyKeeper::Look). Sites whose effective policy has become
  // another are cut off, to come back under it; what they had answered to jobs is withdrawn. A file
  // that is refused changes nothing. One thread at a time; blocks only who calls it.
  Status LookAtPolicies();
  // When it is to be called at the latest: the first instant at which a version that waits may come
  // into force. Empty: none waits. The thread of LookAtPolicies only.
  std::optional<WallTime> NextLook() const { return keeper_.NextLook(); }

  // The rule of who may connect: in the roster, with this key and place.
  Status CheckPeer(const crypto::PeerIdentity& peer) const;
  // Strangers turned away since the last call; one leaf for all of them.
  void LogRefusedPeers(std::uint64_t count, std::chrono::seconds period);
  // The last leaf of this run.
  void LogStopped();
  std::uint64_t Starts() const { return store_.Starts(); }
  const contracts::Identity& Self() const { return identity_; }

 private:
  struct Session {
    std::shared_ptr<SitePort> port;
    contracts::RosterEntry entry;
    std::set<DatasetAlias> datasets;
    std::uint64_t instance = 0;
    std::uint64_t told_head_size = 0;  // of this log's head, last sent to it
    MonotonicTime summed_at;           // control messages are in the log's sums up to here
    ControlTally summed = {};
  };
  // A site as it is remembered over connections.
  struct KnownSite {
    SiteRow row;
    SitePolicy policy;
    contracts::RosterEntry entry;
    // Of its clock, when it last connected to this start of the aggregator.
    std::optional<std::chrono::milliseconds> clock_skew;
  };

  Coordinator(CoordinatorOptions options, contracts::Identity identity, Store store,
              const Clock& clock);

  // start.cc
  Status LogStart() REQUIRES(mutex_);
  Status RestoreSites() REQUIRES(mutex_);
  Status RestoreJobs() REQUIRES(mutex_);
  Status RestoreJob(const JobRow& row) REQUIRES(mutex_);

  // apply.cc
  using Rows = std::function<Status()>;
  Status Apply(Job& job, const Event& event, std::vector<audit::Event> leaves = {},
               const Rows& rows = {}, const std::function<void()>& taken_over = {})
      REQUIRES(mutex_);
  StatusOr<std::vector<std::uint64_t>> Record(Job& job, const Event& event,
                                              std::span<const audit::Event> leaves,
                                              std::span<const Action> actions, const Rows& rows)
      REQUIRES(mutex_);
  StatusOr<std::optional<audit::Event>> LeafOf(const Job& job, const JobState& next,
                                               const Action& action) REQUIRES(mutex_);
  void CarryOut(Job& job, const Action& action, std::uint64_t leaf) REQUIRES(mutex_);
  void PushToParticipants(const std::vector<SiteId>& sites, const ToSite& message) REQUIRES(mutex_);
  void Changed(Job& job) REQUIRES(mutex_);
  void ApplyLater(const JobId& job, const std::string& timer, std::chrono::nanoseconds after,
                  Event event) REQUIRES(mutex_);

  // reload.cc
  // The site is to come back, since its effective policy has become another.
  void SendAway(const SiteId& site) REQUIRES(mutex_);
  void WithdrawAnswers(Job& job, const std::vector<SiteId>& sites) REQUIRES(mutex_);

  // tell.cc
  // Tells the sites what is due, in order. Where no head can be signed now, nothing is told and it
  // is tried again: an end before its commit would be another story.
  void Tell(Job& job) REQUIRES(mutex_);
  void TellOne(Job& job, const Due& due) REQUIRES(mutex_);
  void PushOpen(Job& job, const SiteId& site, const audit::ProvenLeaf& opening) REQUIRES(mutex_);

  // wait.cc
  // How much of the job's deadline has passed, in this start and before.
  std::chrono::seconds WaitedOf(const Job& job) const REQUIRES(mutex_);
  // Writes it down at a fixed pace while the deadline runs.
  void KeepWaited(const JobId& job, std::chrono::seconds pace) REQUIRES(mutex_);
  // The event of a restart, with what had been written down; the time since then counts too.
  StatusOr<Event> StartedEvent(const Job& job) REQUIRES(mutex_);

  // commit.cc
  void Commit(Job& job, const CommitPhase& action) REQUIRES(mutex_);
  StatusOr<std::variant<PhaseResult, policy::Reason>> MakeResult(Job& job,
                                                                 const CommitPhase& action)
      REQUIRES(mutex_);
  Status StoreResult(Job& job, const CommitPhase& action, PhaseResult result) REQUIRES(mutex_);
  // The same sites with the organisations of the roster; one that is not in it does not count.
  Contributors InRoster(std::span<const Contributor> contributors) const REQUIRES(mutex_);

  // ingress.cc
  // Whether the site's own log says, over its own log key and under its own name and place, that
  // these bytes may leave (a stolen TLS key alone submits nothing): kNone, or what is wrong.
  policy::Reason CheckSiteDecision(const SiteId& site, const UpdateHead& head) REQUIRES(mutex_);
  // What the header alone says: proceed, the old receipt, or a refusal.
  std::variant<Proceed, UpdateReceipt, Refusal> CheckHead(const SiteId& site,
                                                          const UpdateHead& head) REQUIRES(mutex_);
  StatusOr<UpdateReceipt> ReceiptOf(Job& job, const SiteId& site) REQUIRES(mutex_);
  std::variant<UpdateReceipt, Refusal> Accept(Job& job, const SiteId& site, const UpdateHead& head,
                                              const CheckedUpdate& checked,
                                              std::uint64_t update_bytes) REQUIRES(mutex_);
  void LogRefused(const SiteId& site, const UpdateHead& head, std::uint64_t bytes,
                  policy::Reason reason, const audit::DecisionRecord* decision) REQUIRES(mutex_);

  // sites.cc
  // A greeting's claims about itself: the log key is the roster's, the instance is no copy's.
  std::optional<Refusal> CheckGreeting(const SiteId& site, const contracts::RosterEntry& entry,
                                       const SiteHello& hello) REQUIRES(mutex_);
  // Records the connection and fills in what the log has to say to the site.
  std::optional<Refusal> Greet(const crypto::PeerIdentity& peer,
                               const contracts::RosterEntry& entry, const SiteId& site,
                               const SiteHello& hello, Welcome& welcome, std::uint64_t& head_size)
      REQUIRES(mutex_);
  // A greeted site's session begins; one that it still had ends.
  void Seat(const SiteId& site, const KnownSite& known, const SiteHello& hello,
            std::shared_ptr<SitePort> port, std::uint64_t head_size) REQUIRES(mutex_);
  // The session of this site is over: every job hears it.
  void Leave(const SiteId& site) REQUIRES(mutex_);
  // control.cc
  // The leaf over the site's control messages since the last such leaf.
  void LogControl(const SiteId& site) REQUIRES(mutex_);
  // And again after each period, while this connection lasts.
  void LogControlLater(const SiteId& site, const SitePort* port) REQUIRES(mutex_);
  // A greeting that was refused, as LogRefused: a member that insists cannot fill the disk.
  void LogRefusedGreeting(const std::string& party, policy::Reason reason) REQUIRES(mutex_);
  void PushCommits(Job& job, Session& session, std::optional<PhaseKey> only) REQUIRES(mutex_);
  Border BorderOf(const KnownSite& site) const;
  Status AppendLeaf(const StatusOr<audit::Event>& event) REQUIRES(mutex_);
  // Every contributor's word on a model going to `recipient`: empty if all allow.
  std::optional<Decided> FirstDenial(const Job& job, const policy::Party& recipient,
                                     std::set<std::string>* rules) REQUIRES(mutex_);
  // views.cc
  std::pair<policy::Reason, audit::DecisionRecord> DecideViewOf(const Job& job,
                                                                const policy::Party& person)
      REQUIRES(mutex_);
  // Takes the metrics out of a view that a contributor's policy keeps from the person.
  Status DecideMetrics(std::string_view operator_name, Job& job, JobView& view) REQUIRES(mutex_);

  Job* FindJob(const JobId& job) REQUIRES(mutex_);
  Session* FindSession(const SiteId& site) REQUIRES(mutex_);

  // Fixed after construction.
  const CoordinatorOptions options_;
  const contracts::Identity identity_;
  const Clock& clock_;

  Mutex mutex_;
  ConditionVariable changed_;
  Store store_;  // guarded by mutex_, save Starts()
  OwnPolicies policies_ GUARDED_BY(mutex_);
  audit::PolicyDigests own_policies_ GUARDED_BY(mutex_);
  std::optional<audit::Log> log_ GUARDED_BY(mutex_);
  std::map<JobId, std::unique_ptr<Job>> jobs_ GUARDED_BY(mutex_);
  std::vector<JobId> job_order_ GUARDED_BY(mutex_);
  std::map<SiteId, Session> sessions_ GUARDED_BY(mutex_);
  std::map<SiteId, KnownSite> known_ GUARDED_BY(mutex_);
  std::set<std::pair<SiteId, JobId>> uploads_ GUARDED_BY(mutex_);
  // Refusals of one site, job, phase and reason: the first is a leaf, the rest are counted.
  std::map<std::string, std::uint64_t> repeated_refusals_ GUARDED_BY(mutex_);

  StorePolicyBooks policy_books_{mutex_, store_, log_};
  contracts::PolicyKeeper keeper_;  // of the thread that calls LookAtPolicies

  Timers timers_;  // last: its thread calls into the rest
};

}  // namespace domicile::aggregator
