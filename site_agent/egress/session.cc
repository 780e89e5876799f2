// One connection: hello, welcome, and what follows until it ends.
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "policy/language/parse.h"
#include "site_agent/egress/agent.h"
#include "site_agent/egress/wire_words.h"
#include "wire/settings.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

constexpr std::chrono::seconds kHeartbeat{15};
constexpr std::chrono::seconds kConnectTimeout{20};
constexpr std::chrono::hours kControlPeriod{1};
// Until the same policies are in force at both ends.
constexpr std::chrono::seconds kOtherCopyPause{30};

// No log could hold a larger number of starts.
constexpr std::uint64_t kMostStarts = std::uint64_t{1} << 50U;

// The aggregator turned us away: what a person reads, and whether to come back.
Status GoodbyeStatus(const v1::Goodbye& goodbye) {
  const Reason reason =
      policy::ReasonFromNumber(goodbye.refusal().reason()).value_or(Reason::kMalformed);
  std::string text = "the aggregator refused this agent: " + std::string(policy::Code(reason)) +
                     ", " + std::string(policy::Explain(reason));
  if (reason == Reason::kProtocolVersion || reason == Reason::kPolicySchemaVersion) {
    const bool protocol = reason == Reason::kProtocolVersion;
    text += " This agent speaks " +
            std::to_string(protocol ? wire::kProtocolVersion : policy::kPolicySchema) +
            ", the aggregator " + std::to_string(goodbye.refusal().limit());
  }
  return Error(goodbye.retry_after_seconds() == 0 ? StatusCode::kFailedPrecondition
                                                  : StatusCode::kUnavailable,
               text);
}

// What is closed per version can be read under no other: nothing of the welcome is looked at
// before.
Status CheckVersions(const v1::Welcome& welcome) {
  const auto differs = [](const std::string& what, Reason reason, std::uint32_t own,
                          std::uint32_t other) {
    return Error(StatusCode::kFailedPrecondition, "the aggregator speaks " + what + " " +
                                                      std::to_string(other) +
                                                      ", this agent speaks " + std::to_string(own) +
                                                      ": " + std::string(policy::Code(reason)) +
                                                      ", " + std::string(policy::Explain(reason)));
  };
  if (welcome.protocol() != wire::kProtocolVersion) {
    return differs("protocol version", Reason::kProtocolVersion, wire::kProtocolVersion,
                   welcome.protocol());
  }
  return welcome.policy_schema() == policy::kPolicySchema
             ? OkStatus()
             : differs("policy schema", Reason::kPolicySchemaVersion, policy::kPolicySchema,
                       welcome.policy_schema());
}

}  // namespace

wire::ClientOptions Agent::OptionsForAggregator() const {
  wire::ClientOptions options;
  options.address = config_.aggregator;
  options.identity = {.key_pem = std::string(identity_.files.tls_key.Text()),
                      .chain_pem = identity_.files.tls_chain,
                      .roots_pem = identity_.files.root};
  options.peer.federation = identity_.Name().federation;
  options.peer.roles = {crypto::Role::kAggregator};
  options.peer.rule = [this](const crypto::PeerIdentity& peer) {
    const contracts::PeerCheck check =
        contracts::CheckPeer(identity_.roster, peer, crypto::Role::kAggregator);
    return check.reason == Reason::kNone
               ? OkStatus()
               : Error(StatusCode::kUnauthenticated, "the aggregator's certificate is refused: " +
                                                         std::string(policy::Code(check.reason)));
  };
  options.transport.window_bytes = config_.window_bytes;
  options.clock = &clock_;
  return options;
}

// Connected, hello said.
StatusOr<std::shared_ptr<Connection>> Agent::Connect(const std::stop_token& stop) {
  auto connection = std::make_shared<Connection>();
  ASSIGN_OR_RETURN(connection->client,
                   wire::FederationClient::Connect(OptionsForAggregator(),
                                                   {.timeout = kConnectTimeout, .stop = stop}));
  const contracts::PeerCheck server = contracts::CheckPeer(
      identity_.roster, connection->client->Server(), crypto::Role::kAggregator);
  if (server.reason != Reason::kNone) {
    return Error(StatusCode::kUnauthenticated, "the aggregator is not in the roster");
  }
  connection->terms.aggregator = *server.entry;
  ASSIGN_OR_RETURN(connection->terms.aggregator_log,
                   crypto::NoteVerifier::Parse(server.entry->log_key));
  ASSIGN_OR_RETURN(const v1::SiteMessage hello, MakeHello());
  events_.Clear();
  connection->listener = std::make_unique<EventListener>(events_);
  connection->control = connection->client->OpenControl(*connection->listener);
  const Status said = connection->control->Send(hello);
  if (!said.ok()) {
    connection->listener->Detach();
    return said;
  }
  return connection;
}

Status Agent::RunConnection(const std::stop_token& stop, const std::function<void()>& ready) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, Connect(stop));
  Status ended = OkStatus();
  summed_at_ = clock_.Monotonic();
  summed_ = {};
  auto heartbeat = std::chrono::steady_clock::now() + kHeartbeat;
  while (!stop.stop_requested() && ended.ok()) {
    if (const std::optional<AgentEvent> event = events_.Next(heartbeat, stop)) {
      ended = TakeEvent(*event, connection, ready);
    } else {
      heartbeat = std::chrono::steady_clock::now() + kHeartbeat;
      ended = LookAtPolicies();
      if (ended.ok() && was_ready_) {
        ended = SendHeartbeat(*connection);
      }
      if (ended.ok() && was_ready_ && clock_.Monotonic() - summed_at_ >= kControlPeriod) {
        ended = LogControl(*connection);
      }
    }
  }
  current_.Set(nullptr);
  connection->listener->Detach();
  connection->control->Close();
  if (was_ready_) {
    const Status logged = LogControl(*connection);
    return ended.ok() ? logged : ended;
  }
  return ended;
}

Status Agent::LogControl(const Connection& connection) {
  const wire::ControlTally now = connection.control->Tally();
  const wire::ControlTally sum = now.Since(std::exchange(summed_, now));
  const MonotonicTime since = std::exchange(summed_at_, clock_.Monotonic());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(summed_at_ - since).count();
  return books_
      ->Append(
          ToEvent(audit::ControlSummary{.peer = "aggregator/" + connection.terms.aggregator.name,
                                        .seconds = static_cast<std::uint64_t>(seconds),
                                        .messages_in = sum.messages_in,
                                        .messages_out = sum.messages_out,
                                        .bytes_in = sum.bytes_in,
                                        .bytes_out = sum.bytes_out}))
      .status();
}

// Anything but OK ends the connection.
Status Agent::TakeEvent(const AgentEvent& event, const std::shared_ptr<Connection>& connection,
                        const std::function<void()>& ready) {
  if (const auto* closed = std::get_if<StreamClosed>(&event)) {
    return closed->why.ok() ? Error(StatusCode::kUnavailable, "the connection has ended")
                            : closed->why;
  }
  if (std::holds_alternative<GrantsChanged>(event)) {
    RETURN_IF_ERROR(TakeDenials(was_ready_ ? connection.get() : nullptr));
    return was_ready_ ? AnswerHeld(*connection) : OkStatus();
  }
  if (std::holds_alternative<ReloadAsked>(event)) {
    return LookAtPolicies();
  }
  const auto& directive = std::get<v1::Directive>(event);
  if (directive.has_goodbye()) {
    come_back_after_ = std::chrono::seconds(directive.goodbye().retry_after_seconds());
    const Status refused = GoodbyeStatus(directive.goodbye());
    const Status remembered = books_->CheckRemembered(directive.goodbye().witnessed_head(),
                                                      directive.goodbye().refusal().limit());
    return remembered.ok() ? refused : Annotate(remembered, Message(refused));
  }
  if (was_ready_) {
    return Handle(directive, *connection);
  }
  if (!directive.has_welcome()) {
    return Error(StatusCode::kInvalidArgument, "the aggregator did not say welcome first");
  }
  RETURN_IF_ERROR(TakeWelcome(directive.welcome(), *connection));
  was_ready_ = true;
  current_.Set(connection);
  RETURN_IF_ERROR(SendHeartbeat(*connection));
  ready();
  return OkStatus();
}

StatusOr<v1::SiteMessage> Agent::MakeHello() {
  v1::SiteMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_protocol_min(wire::kProtocolVersion);
  hello->set_protocol_max(wire::kProtocolVersion);
  hello->set_policy_schema_min(policy::kPolicySchema);
  hello->set_policy_schema_max(policy::kPolicySchema);
  hello->set_instance(books_->Instance());
  hello->set_sent_unix_ms(contracts::UnixMilliseconds(clock_.Now()));
  if (const std::optional<HelloMessage> trainer = trainer_.Facts()) {
    for (const DatasetFact& dataset : trainer->datasets) {
      // Only what the policy knows by that alias: another name never leaves.
      if (policies_.site.Find(dataset.alias) != nullptr) {
        hello->add_dataset_aliases(dataset.alias.text());
      }
    }
  }
  hello->set_policy_statement(policies_.statement);
  hello->set_roster(identity_.files.roster_note);
  ASSIGN_OR_RETURN(const Books::ProvenHead own, books_->HeadSince(0));
  hello->set_own_head(own.head.note);
  ASSIGN_OR_RETURN(const std::optional<audit::RecoveryClaim> recovery, books_->RecoveryToShow());
  if (recovery) {
    Fill(*hello->mutable_recovery(), *recovery);
  }
  const std::string federation = identity_.Name().federation;
  for (const contracts::RosterEntry& entry : identity_.roster.entries) {
    if (entry.role == crypto::Role::kAggregator) {
      ASSIGN_OR_RETURN(const crypto::NoteVerifier key, crypto::NoteVerifier::Parse(entry.log_key));
      ASSIGN_OR_RETURN(const std::string seen, books_->LastPeerHead(key.name()));
      hello->set_last_aggregator_head(seen);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<OutboxRow> outbox,
                   books_->With([](SiteStore& store) { return store.Outbox(); }));
  for (const OutboxRow& row : outbox) {
    v1::PendingUpdate* pending = hello->add_pending();
    Fill(*pending->mutable_phase(), row.phase);
    pending->set_digest(Raw(row.digest));
  }
  return message;
}

Status Agent::TakeWelcome(const v1::Welcome& welcome, Connection& connection) {
  Terms& terms = connection.terms;
  RETURN_IF_ERROR(CheckVersions(welcome));
  RETURN_IF_ERROR(TakeStarts(welcome, terms));
  terms.starts = welcome.starts();
  RETURN_IF_ERROR(TakeRoster(welcome, terms));
  RETURN_IF_ERROR(CheckHistories(welcome, terms));
  StatusOr<ForcedPolicies> met = MeetOnConnect(policies_, welcome.federation_policy(),
                                               welcome.aggregator_policy(), welcome.legal_facts());
  if (met.status().code() == StatusCode::kUnavailable) {
    come_back_after_ = kOtherCopyPause;
  }
  ASSIGN_OR_RETURN(terms.policies, std::move(met));
  terms.clock_skew = contracts::SkewOf(welcome.sent_unix_ms(), clock_.Now());
  RETURN_IF_ERROR(CheckEnrolment(terms));
  RETURN_IF_ERROR(
      books_->With([&](SiteStore& store) { return store.SetAggregatorStarts(welcome.starts()); }));
  const crypto::PeerIdentity server = connection.client->Server();
  return books_
      ->Append(audit::EventBuilder(audit::EventType::kPeerConnected)
                   .Set("peer", "aggregator/" + terms.aggregator.name)
                   .Set("jurisdiction", terms.aggregator.jurisdiction)
                   .Set("key", server.key)
                   .Set("instance", welcome.starts())
                   .Set("protocol", welcome.protocol())
                   .Build())
      .status();
}

// Whether this site's policies let it work with this aggregator at all, whatever the job.
Status Agent::CheckEnrolment(const Terms& terms) {
  const Decided decided =
      DecideEnrolment(terms.policies, terms.site, terms.aggregator, terms.clock_skew, clock_.Now());
  if (decided.Allowed()) {
    return OkStatus();
  }
  const policy::Finding& finding = decided.decision.findings.front();
  const std::string code(policy::Code(finding.reason));
  Json tally;
  tally.Set("reason", code);
  tally.Set("count", 1);
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kPeerRefused)
                                   .Set("peer", "aggregator/" + terms.aggregator.name)
                                   .Set("seconds", 0)
                                   .Set("counts", Json(JsonArray{tally}))
                                   .Build())
                      .status());
  return Error(StatusCode::kFailedPrecondition,
               "this site's policies refuse the aggregator: " + code + ", " + finding.what + "; " +
                   finding.remedy);
}

Status Agent::TakeStarts(const v1::Welcome& welcome, const Terms& terms) {
  if (welcome.starts() > kMostStarts) {
    return Error(StatusCode::kInvalidArgument, "the aggregator's number of starts is absurd");
  }
  ASSIGN_OR_RETURN(const std::uint64_t greatest,
                   books_->With([](SiteStore& store) { return store.AggregatorStarts(); }));
  if (welcome.starts() >= greatest) {
    return OkStatus();
  }
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kInstanceConflict)
                                   .Set("peer", "aggregator/" + terms.aggregator.name)
                                   .Set("instance", welcome.starts())
                                   .Set("greatest", greatest)
                                   .Build())
                      .status());
  return Error(StatusCode::kFailedPrecondition,
               "this aggregator says it is start " + std::to_string(welcome.starts()) +
                   ", but start " + std::to_string(greatest) +
                   " has been seen: an older copy of it is running; nothing is sent");
}

// A newer roster counts from now on; the keys that were checked at the handshake must still be in
// it.
Status Agent::TakeRoster(const v1::Welcome& welcome, Terms& terms) {
  ASSIGN_OR_RETURN(terms.roster, contracts::OpenRoster(welcome.roster(), identity_.roster_key,
                                                       clock_.Now(), identity_.roster.version));
  const contracts::RosterEntry* site =
      terms.roster.Find(crypto::Role::kSite, identity_.Name().name);
  const contracts::RosterEntry* aggregator =
      terms.roster.Find(crypto::Role::kAggregator, terms.aggregator.name);
  if (site == nullptr || aggregator == nullptr || *aggregator != terms.aggregator) {
    return Error(StatusCode::kFailedPrecondition,
                 "the roster in force does not list this site and this aggregator as they are");
  }
  terms.site = *site;
  return OkStatus();
}

// The aggregator's log goes on from what this site has seen, and this site's from what was
// witnessed of it.
Status Agent::CheckHistories(const v1::Welcome& welcome, const Terms& terms) {
  ASSIGN_OR_RETURN(const std::vector<Digest> consistency, DigestsFrom(welcome.consistency()));
  RETURN_IF_ERROR(
      Annotate(books_->WitnessPeerHead(welcome.head(), terms.aggregator_log, consistency).status(),
               "the aggregator's log is not the one this site has seen"));
  RETURN_IF_ERROR(books_->CheckRemembered(welcome.witnessed_head(), books_->Instance()));
  witnessed_size_ = 0;
  if (!welcome.witnessed_head().empty()) {
    ASSIGN_OR_RETURN(
        const crypto::Checkpoint own,
        crypto::OpenCheckpoint(welcome.witnessed_head(), identity_.log_key->Verifier()));
    witnessed_size_ = own.size;
  }
  return OkStatus();
}

Status Agent::TakeHeads(const v1::Heads& heads, const Terms& terms) {
  ASSIGN_OR_RETURN(const std::vector<Digest> consistency, DigestsFrom(heads.consistency()));
  RETURN_IF_ERROR(Annotate(
      books_
          ->WitnessPeerHead(heads.head(), terms.aggregator_log, consistency, heads.witnessed_size())
          .status(),
      "the aggregator's log is not the one this site has seen"));
  witnessed_size_ = std::max<std::uint64_t>(witnessed_size_, heads.witnessed_size());
  return OkStatus();
}

Status Agent::SendHeartbeat(Connection& connection) {
  ASSIGN_OR_RETURN(const Books::ProvenHead own, books_->HeadSince(witnessed_size_));
  v1::SiteMessage message;
  message.mutable_heartbeat()->set_own_head(own.head.note);
  for (const Digest& node : own.consistency) {
    message.mutable_heartbeat()->add_consistency(Raw(node));
  }
  RETURN_IF_ERROR(connection.control->Send(message));
  // The next one may be read before the answer to this one comes: it goes on from here.
  witnessed_size_ = std::max(witnessed_size_, own.head.checkpoint.size);
  return OkStatus();
}

Status Agent::Handle(const v1::Directive& directive, Connection& connection) {
  if (directive.has_job_offer()) {
    return TakeOffer(directive.job_offer(), connection);
  }
  if (directive.has_open_phase()) {
    return TakeOpening(directive.open_phase(), connection);
  }
  if (directive.has_phase_outcome()) {
    RETURN_IF_ERROR(TakeOutcome(directive.phase_outcome(), connection));
    return SendHeartbeat(connection);  // so that each round's leaves are witnessed at both ends
  }
  if (directive.has_job_ended()) {
    RETURN_IF_ERROR(TakeJobEnd(directive.job_ended()));
    return SendHeartbeat(connection);
  }
  if (directive.has_heads()) {
    return TakeHeads(directive.heads(), connection.terms);
  }
  return Error(StatusCode::kInvalidArgument, "a second welcome");
}

}  // namespace domicile::site_agent
