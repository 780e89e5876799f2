// Sites: who connects, what they answer, which models they get.
#include <algorithm>
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "aggregator/coordinator/recovery.h"
#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"

namespace domicile::aggregator {

namespace {

using policy::Reason;

Refusal Refuse(Reason reason) {
  Refusal refusal;
  refusal.reason = reason;
  return refusal;
}

std::string PartyName(const SiteId& site) { return "site/" + site.text(); }

}  // namespace

Status Coordinator::CheckPeer(const crypto::PeerIdentity& peer) const {
  const contracts::PeerCheck check = contracts::CheckPeer(identity_.roster, peer, peer.spiffe.role);
  if (check.reason == Reason::kNone) {
    return OkStatus();
  }
  return Error(StatusCode::kUnauthenticated,
               "`" + crypto::PrintSpiffe(peer.spiffe) +
                   "` is refused: " + std::string(policy::Code(check.reason)));
}

std::optional<Refusal> Coordinator::CheckGreeting(const SiteId& site,
                                                  const contracts::RosterEntry& entry,
                                                  const SiteHello& hello) {
  const StatusOr<crypto::NoteVerifier> log_key = crypto::NoteVerifier::Parse(entry.log_key);
  if (!log_key.ok() || !crypto::OpenCheckpoint(hello.own_head, *log_key).ok()) {
    return Refuse(Reason::kLogHead);
  }
  const auto with_head = [&](Refusal refusal) REQUIRES(mutex_) {
    // So that a restored copy learns what it is behind; without it, it is refused all the same.
    refusal.witnessed_head =
        audit::PeerHeads(store_.Db()).LastNote(log_key->name()).value_or(std::string());
    return refusal;
  };
  const auto known = known_.find(site);
  const std::uint64_t greatest = known == known_.end() ? 0 : known->second.row.instance;
  const Session* live = FindSession(site);
  const bool is_twin = live != nullptr && hello.instance == live->instance;
  if (hello.instance >= greatest && !is_twin) {
    const Status recovered = hello.recovery
                                 ? AcceptRecovery(store_, *log_, site, *log_key, *hello.recovery)
                                 : OkStatus();
    if (recovered.ok()) {
      return std::nullopt;
    }
    LogError("the recovery of site `" + site.text() + "`: " + std::string(Message(recovered)));
    return with_head(Refuse(Reason::kLogHead));
  }
  // The same number twice at once, or a smaller one, is a clone or a restored copy.
  if (!AppendLeaf(audit::EventBuilder(audit::EventType::kInstanceConflict)
                      .Set("peer", PartyName(site))
                      .Set("instance", hello.instance)
                      .Set("greatest", greatest)
                      .Build())
           .ok()) {
    return Refuse(Reason::kLogUnavailable);
  }
  Refusal refusal = Refuse(is_twin ? Reason::kAlreadyConnected : Reason::kInstance);
  refusal.limit = greatest;
  refusal.found = hello.instance;
  return is_twin ? refusal : with_head(refusal);
}

std::optional<Refusal> Coordinator::Greet(const crypto::PeerIdentity& peer,
                                          const contracts::RosterEntry& entry, const SiteId& site,
                                          const SiteHello& hello, Welcome& welcome,
                                          std::uint64_t& head_size) {
  const auto record = [&]() REQUIRES(mutex_) -> Status {
    ASSIGN_OR_RETURN(const crypto::NoteVerifier log_key,
                     crypto::NoteVerifier::Parse(entry.log_key));
    audit::PeerHeads heads(store_.Db());
    ASSIGN_OR_RETURN(welcome.witnessed_head, heads.LastNote(log_key.name()));
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
    RETURN_IF_ERROR(
        store_.SetSite(site, {.instance = hello.instance, .statement = hello.policy_statement}));
    RETURN_IF_ERROR(AppendLeaf(audit::EventBuilder(audit::EventType::kPeerConnected)
                                   .Set("peer", PartyName(site))
                                   .Set("jurisdiction", entry.jurisdiction)
                                   .Set("key", peer.key)
                                   .Set("instance", hello.instance)
                                   .Build()));
    RETURN_IF_ERROR(transaction.Commit());
    ASSIGN_OR_RETURN(const audit::SignedHead head, log_->Head());
    welcome.head = head.note;
    head_size = head.checkpoint.size;
    return OkStatus();
  };
  if (const Status recorded = record(); !recorded.ok()) {
    LogError(std::string(Message(recorded)));
    return Refuse(Reason::kLogUnavailable);
  }
  if (hello.last_aggregator_head.empty()) {
    return std::nullopt;
  }
  const StatusOr<crypto::Checkpoint> seen =
      crypto::OpenCheckpoint(hello.last_aggregator_head, identity_.log_key->Verifier());
  if (!seen.ok() || !log_->CheckRemembered(*seen).ok()) {
    LogError("site `" + site.text() +
             "` remembers a head that this log does not contain: it was restored or changed");
    return Refuse(Reason::kLogHead);
  }
  if (seen->size > 0) {
    StatusOr<std::vector<Digest>> proof = log_->ConsistencyProof(seen->size, head_size);
    if (!proof.ok()) {
      return Refuse(Reason::kLogHead);
    }
    welcome.consistency = *std::move(proof);
  }
  return std::nullopt;
}

void Coordinator::Seat(const SiteId& site, const KnownSite& known, const SiteHello& hello,
                       std::shared_ptr<SitePort> port, std::uint64_t head_size) {
  if (Session* live = FindSession(site)) {
    const std::shared_ptr<SitePort> old = live->port;  // kept while its session goes
    Leave(site);
    old->End(Refuse(Reason::kSuperseded));
  }
  known_.insert_or_assign(site, known);
  sessions_.insert_or_assign(site,
                             Session{.port = std::move(port),
                                     .entry = known.entry,
                                     .datasets = {hello.datasets.begin(), hello.datasets.end()},
                                     .instance = hello.instance,
                                     .told_head_size = head_size,
                                     .summed_at = clock_.Monotonic()});
  LogControlLater(site, sessions_.at(site).port.get());
  LogInfo("site `" + site.text() + "` (" + known.entry.jurisdiction + ") connected");
}

std::variant<Welcome, Refusal> Coordinator::Connect(const crypto::PeerIdentity& peer,
                                                    const SiteHello& hello,
                                                    std::shared_ptr<SitePort> port) {
  const MutexLock lock(mutex_);
  const contracts::PeerCheck check =
      contracts::CheckPeer(identity_.roster, peer, crypto::Role::kSite);
  if (check.reason != Reason::kNone) {
    return Refuse(check.reason);
  }
  const contracts::RosterEntry& entry = *check.entry;
  const StatusOr<SiteId> site = SiteId::Parse(entry.name);
  if (!site.ok()) {
    return Refuse(Reason::kNotInRoster);
  }
  StatusOr<SitePolicy> policy = MeetStatement(policies_, hello.policy_statement, entry);
  if (!policy.ok()) {
    LogWarning(std::string(Message(policy.status())));
    const Reason reason = policy.status().code() == StatusCode::kPermissionDenied
                              ? Reason::kJurisdictionMismatch
                              : Reason::kMalformed;
    LogRefusedGreeting(PartyName(*site), reason);
    return Refuse(reason);
  }
  const KnownSite known{.row = {.instance = hello.instance, .statement = hello.policy_statement},
                        .policy = *std::move(policy),
                        .entry = entry,
                        .clock_skew = contracts::SkewOf(hello.sent_unix_ms, clock_.Now())};
  if (const Decided decided = DecideEnrolment(known.policy, BorderOf(known), clock_.Now());
      !decided.Allowed()) {
    LogWarning("site `" + site->text() +
               "` may not work with this aggregator: " + decided.decision.findings.front().what);
    LogRefusedGreeting(PartyName(*site), decided.decision.Why());
    return Refuse(decided.decision.Why());
  }
  if (std::optional<Refusal> refusal = CheckGreeting(*site, entry, hello)) {
    if (refusal->reason == Reason::kLogHead) {
      LogRefusedGreeting(PartyName(*site), refusal->reason);  // the others have logged themselves
    }
    return *refusal;
  }
  Welcome welcome{.starts = store_.Starts(),
                  .federation_policy = policies_.federation_text,
                  .aggregator_policy = policies_.aggregator_text,
                  .legal_facts = policies_.facts_text,
                  .roster = identity_.files.roster_note,
                  .head = {},
                  .consistency = {},
                  .witnessed_head = {},
                  .sent_unix_ms = contracts::UnixMilliseconds(clock_.Now())};
  std::uint64_t head_size = 0;
  if (std::optional<Refusal> refusal = Greet(peer, entry, *site, hello, welcome, head_size)) {
    return *refusal;
  }
  Seat(*site, known, hello, std::move(port), head_size);
  return welcome;
}

void Coordinator::Joined(const SiteId& site, std::span<const std::pair<JobId, PhaseKey>> pending) {
  const MutexLock lock(mutex_);
  Session* session = FindSession(site);
  if (session == nullptr) {
    return;
  }
  for (const auto& [id, key] : pending) {
    Job* job = FindJob(id);
    if (job != nullptr && job->HasEnded()) {
      PushCommits(*job, *session, key);
      session->port->Push(
          EndedMessage{.job = id, .stage = job->state.stage, .reason = job->state.reason});
    }
  }
  // What it has missed of the jobs it takes part in: each later model is measured by these commits.
  for (const JobId& id : job_order_) {
    Job& job = *jobs_.at(id);
    if (!job.HasEnded() && job.state.sites.contains(site)) {
      PushCommits(job, *session, std::nullopt);
    }
  }
  for (const JobId& id : job_order_) {
    Job& job = *jobs_.at(id);
    if (!job.HasEnded() && session->datasets.contains(job.plan->dataset)) {
      Apply(job, SiteConnected{.site = site}).IgnoreError();  // logged there; it asks again
    }
  }
}

// The commits of a job, oldest first; of one phase only, if it is named.
void Coordinator::PushCommits(Job& job, Session& session, std::optional<PhaseKey> only) {
  for (const auto& [key, commit] : job.commits) {
    if (only && (only->round != key.first || only->phase != key.second)) {
      continue;
    }
    StatusOr<audit::ProvenLeaf> leaf = log_->LeafWithProof(commit.leaf);
    if (leaf.ok()) {
      session.port->Push(OutcomeMessage{.job = job.id,
                                        .key = {.round = key.first, .phase = key.second},
                                        .epoch = commit.epoch,
                                        .reason = Reason::kNone,
                                        .leaf = *std::move(leaf)});
    }
  }
}

void Coordinator::Disconnected(const SiteId& site, const SitePort* port) {
  const MutexLock lock(mutex_);
  const Session* session = FindSession(site);
  if (session != nullptr && session->port.get() == port) {
    Leave(site);  // else: an older stream of a site that has come back
  }
}

void Coordinator::Leave(const SiteId& site) {
  LogControl(site);
  timers_.Cancel("control/" + site.text());
  sessions_.erase(site);
  AppendLeaf(
      audit::EventBuilder(audit::EventType::kPeerDisconnected).Set("peer", PartyName(site)).Build())
      .IgnoreError();  // the next leaf that must be written says that the disk fails
  for (const JobId& id : job_order_) {
    Job& job = *jobs_.at(id);
    if (!job.HasEnded() && job.state.sites.contains(site)) {
      Apply(job, SiteDisconnected{.site = site}).IgnoreError();  // logged there
    }
  }
  LogInfo("site `" + site.text() + "` disconnected");
}

void Coordinator::ReplyToOffer(const SiteId& site, const OfferReply& reply) {
  const MutexLock lock(mutex_);
  Job* job = FindJob(reply.job);
  Session* session = FindSession(site);
  if (job == nullptr || session == nullptr || job->HasEnded() || reply.plan != job->plan_digest) {
    return;
  }
  OfferAnswered event{.site = site,
                      .organisation = {},
                      .answer = reply.answer,
                      .reason = reply.reason,
                      .min_contributors = reply.min_contributors,
                      .policy = reply.effective_policy};
  StatusOr<OrganisationId> organisation = OrganisationId::Parse(session->entry.organisation);
  const SitePolicy& policy = known_.at(site).policy;
  if (!organisation.ok()) {
    event.answer = Answer::kDecline;
    event.reason = Reason::kNotInRoster;
  } else if (reply.answer == Answer::kAccept &&
             reply.effective_policy != policy.digests.effective) {
    event.answer = Answer::kDecline;
    event.reason = Reason::kPolicyDigestMismatch;
  }
  if (organisation.ok()) {
    event.organisation = *organisation;
  }
  audit::EventBuilder leaf(event.answer == Answer::kAccept    ? audit::EventType::kOfferAccepted
                           : event.answer == Answer::kDecline ? audit::EventType::kOfferDeclined
                                                              : audit::EventType::kOfferHeld);
  leaf.Set("job", job->id).Set("plan", job->plan_digest).Set("site", site);
  if (event.answer == Answer::kAccept) {
    leaf.Set("min_contributors", event.min_contributors).Set("effective_policy", event.policy);
  } else {
    leaf.Set("reason", std::string(policy::Code(event.reason)));
  }
  StatusOr<audit::Event> built = leaf.Build();
  if (!built.ok()) {
    LogError(std::string(Message(built.status())));
    return;
  }
  Apply(*job, event, {*built})
      .IgnoreError();  // logged there; the site answers again when it reconnects
}

void Coordinator::DeclinePhase(const SiteId& site, const JobId& id, const PhaseKey& key,
                               const Epoch& epoch, Reason reason) {
  const MutexLock lock(mutex_);
  Job* job = FindJob(id);
  if (job != nullptr && !job->HasEnded()) {
    Apply(*job, PhaseDeclined{.site = site, .key = key, .epoch = epoch, .reason = reason})
        .IgnoreError();  // logged there; the deadline ends the phase
  }
}

void Coordinator::ReportProgress(const SiteId& site, const JobId& id, const PhaseKey& key,
                                 std::uint32_t percent) {
  const MutexLock lock(mutex_);
  Job* job = FindJob(id);
  if (job == nullptr || !job->state.current || job->state.current->key != key ||
      !job->state.current->participants.contains(site)) {
    return;
  }
  job->percent[site] = std::min<std::uint32_t>(percent, 100);
  Changed(*job);
}

void Coordinator::WitnessHead(const SiteId& site, const std::string& note,
                              std::span<const Digest> proof) {
  const MutexLock lock(mutex_);
  Session* session = FindSession(site);
  if (session == nullptr) {
    return;
  }
  const StatusOr<crypto::NoteVerifier> key = crypto::NoteVerifier::Parse(session->entry.log_key);
  const auto witness = [&]() REQUIRES(mutex_) -> StatusOr<std::optional<crypto::Checkpoint>> {
    RETURN_IF_ERROR(key.status());
    audit::PeerHeads heads(store_.Db());
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
    ASSIGN_OR_RETURN(const std::optional<crypto::Checkpoint> before, heads.Last(key->name()));
    ASSIGN_OR_RETURN(const crypto::Checkpoint head, heads.Check(note, *key, proof));
    if (!before || before->size != head.size) {
      RETURN_IF_ERROR(AppendLeaf(audit::EventBuilder(audit::EventType::kHeadWitnessed)
                                     .Set("log", head.origin)
                                     .Set("size", head.size)
                                     .Set("root", head.root)
                                     .Build()));
    }
    RETURN_IF_ERROR(transaction.Commit());
    return std::optional(head);
  };
  const StatusOr<std::optional<crypto::Checkpoint>> head = witness();
  if (!head.ok()) {
    LogError("the log of site `" + site.text() + "`: " + std::string(Message(head.status())));
    // Either way the next head would go on from one that is not remembered here: the site comes
    // back and is told which one is, or, if its log is another one, stays away.
    const bool is_ours = head.status().code() == StatusCode::kUnavailable ||
                         head.status().code() == StatusCode::kResourceExhausted;
    session->port->End(Refuse(is_ours ? Reason::kLogUnavailable : Reason::kLogHead));
    return;
  }
  StatusOr<audit::SignedHead> own = log_->Head();
  StatusOr<std::vector<Digest>> own_proof = std::vector<Digest>{};
  if (own.ok() && session->told_head_size > 0) {
    own_proof = log_->ConsistencyProof(session->told_head_size, own->checkpoint.size);
  }
  if (own.ok() && own_proof.ok()) {
    session->told_head_size = own->checkpoint.size;
    session->port->Push(HeadsMessage{
        .head = own->note, .consistency = *std::move(own_proof), .witnessed_size = (*head)->size});
  }
}

StatusOr<std::string> Coordinator::OpenModel(const SiteId& site, const Digest& digest) {
  const MutexLock lock(mutex_);
  for (const JobId& id : job_order_) {
    Job& job = *jobs_.at(id);
    if (!job.state.current || !job.state.current->participants.contains(site)) {
      continue;
    }
    // The first model too: a site that joins late measures the present one from it.
    const bool is_first = digest == job.base_model.digest;
    if (digest != job.model.digest && !is_first) {
      continue;
    }
    const Session* session = FindSession(site);
    if (session == nullptr) {
      return Error(StatusCode::kFailedPrecondition, "open a control stream first");
    }
    const policy::Party recipient = contracts::PartyOf(session->entry);
    std::set<std::string> rules;
    // Nobody's records are behind the first model.
    std::optional<Decided> denial = is_first ? std::nullopt : FirstDenial(job, recipient, &rules);
    const audit::PartyPlace from{.party = "aggregator/" + identity_.entry.name,
                                 .jurisdiction = identity_.entry.jurisdiction};
    const audit::PartyPlace to{.party = PartyName(site),
                               .jurisdiction = session->entry.jurisdiction};
    if (denial) {
      RETURN_IF_ERROR(AppendLeaf(audit::EventBuilder(audit::EventType::kModelReleaseDenied)
                                     .Set("job", job.id)
                                     .Set("round", job.state.current->key.round)
                                     .Set("model", digest)
                                     .Set("kind", "model.final")
                                     .Set("from", ToJson(from))
                                     .Set("to", ToJson(to))
                                     .Set("decision", ToJson(denial->record))
                                     .Build()));
      return Error(StatusCode::kPermissionDenied,
                   "policy of a contributor: " + std::string(policy::Code(denial->decision.Why())));
    }
    RETURN_IF_ERROR(AppendLeaf(
        ToEvent(audit::EventType::kModelSent,
                audit::ModelTransfer{
                    .key = LogKey(job.id, job.state.current->key, job.state.current->epoch),
                    .model = digest,
                    .bytes = job.model.size_bytes,
                    .kind = "model.final",
                    .from = from,
                    .to = to,
                    .decision = {.result = "allow",
                                 .reasons = {std::string(policy::Code(Reason::kPermitted))},
                                 .rules = {rules.begin(), rules.end()},
                                 .policies = known_.at(site).policy.digests}})));
    return store_.ModelPath(digest);
  }
  return Error(StatusCode::kNotFound, "no open phase of this site has such a model");
}

std::optional<Decided> Coordinator::FirstDenial(const Job& job, const policy::Party& recipient,
                                                std::set<std::string>* rules) {
  for (const SiteId& contributor : job.contributors) {
    const auto known = known_.find(contributor);
    if (known == known_.end()) {
      // Its word cannot be had any more: unknown means deny.
      Decided nobody;
      nobody.record = {.result = "deny",
                       .reasons = {std::string(policy::Code(Reason::kNotInRoster))},
                       .rules = {},
                       .policies = own_policies_};
      nobody.decision.findings.push_back(
          {.reason = Reason::kNotInRoster, .origin = {}, .what = "", .remedy = ""});
      return nobody;
    }
    if (recipient.role == policy::PartyRole::kSite && recipient.id == contributor.text()) {
      continue;  // its own contribution coming home
    }
    Decided decided = DecideModelTo(known->second.policy, *job.plan, BorderOf(known->second),
                                    recipient, job.last_contributors, clock_.Now());
    if (!decided.Allowed()) {
      return decided;
    }
    rules->insert(decided.record.rules.begin(), decided.record.rules.end());
  }
  return std::nullopt;
}

Border Coordinator::BorderOf(const KnownSite& site) const {
  return {.site = site.entry,
          .aggregator = identity_.entry,
          .roster = identity_.roster,
          .clock_skew = site.clock_skew};
}

Status Coordinator::AppendLeaf(const StatusOr<audit::Event>& event) {
  RETURN_IF_ERROR(event.status());
  return log_->Append(*event).status();
}

StatusOr<Coordinator::Proof> Coordinator::ProveConsistency(std::uint64_t first_size) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const audit::SignedHead head, log_->Head());
  Proof proof{.head = head.note, .proof = {}};
  if (first_size > 0) {
    ASSIGN_OR_RETURN(proof.proof, log_->ConsistencyProof(first_size, head.checkpoint.size));
  }
  return proof;
}

}  // namespace domicile::aggregator
