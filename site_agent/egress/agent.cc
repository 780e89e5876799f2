#include "site_agent/egress/agent.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "crypto/sha256.h"

namespace domicile::site_agent {

namespace {

constexpr std::chrono::milliseconds kFirstRetry{200};
constexpr std::chrono::milliseconds kLongestRetry{10'000};
constexpr std::chrono::seconds kLongestComeBack{600};  // whatever a goodbye asks for

Digest DigestOf(std::string_view text) { return crypto::Sha256(AsBytes(text)); }

// What no retry mends.
bool IsFinal(const Status& status) {
  return status.code() == StatusCode::kDataLoss ||
         status.code() == StatusCode::kFailedPrecondition || status.code() == StatusCode::kInternal;
}

void WaitFor(std::chrono::milliseconds time, const std::stop_token& stop) {
  Mutex mutex;
  ConditionVariable stopped;
  const MutexLock lock(mutex);
  stopped.wait_for(mutex, stop, time, [] { return false; });
}

}  // namespace

Agent::Agent(AgentConfig config, contracts::Identity identity, std::string version,
             const Clock& clock)
    : config_(std::move(config)),
      identity_(std::move(identity)),
      version_(std::move(version)),
      clock_(clock),
      trainer_(config_.trainer_socket) {}

Agent::~Agent() = default;

StatusOr<std::unique_ptr<Agent>> Agent::Open(AgentConfig config, contracts::Identity identity,
                                             std::string version, ReadPolicyFile read,
                                             const Clock& clock, Random& random) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<Agent> agent(
      new Agent(std::move(config), std::move(identity), std::move(version), clock));
  RETURN_IF_ERROR(CreateFolders(agent->config_.grants));
  ASSIGN_OR_RETURN(agent->books_,
                   Books::Open(agent->config_.state, *agent->identity_.log_key, clock, random));
  agent->policy_books_.emplace(*agent->books_);
  contracts::PolicyKeeperOptions files =
      PolicyFilesOf(agent->config_, agent->identity_.Name().jurisdiction);
  files.read = std::move(read);
  agent->keeper_.emplace(std::move(files), *agent->policy_books_, clock);
  ASSIGN_OR_RETURN(SiteId id, SiteId::Parse(agent->identity_.Name().name));
  agent->site_ = std::make_unique<Site>(Site{.config = agent->config_,
                                             .identity = agent->identity_,
                                             .id = std::move(id),
                                             .books = *agent->books_,
                                             .trainer = agent->trainer_,
                                             .current = agent->current_,
                                             .clock = clock});
  agent->runner_ = std::make_unique<PhaseRunner>(*agent->site_);
  ASSIGN_OR_RETURN(agent->grants_watch_,
                   FolderWatch::Start(agent->config_.grants, [events = &agent->events_] {
                     events->Push(GrantsChanged{});
                   }));
  return agent;
}

Status Agent::LogStart() {
  const crypto::SpiffeName& name = identity_.Name();
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kAgentStarted)
                                   .Set("site", name.name)
                                   .Set("jurisdiction", name.jurisdiction)
                                   .Set("instance", books_->Instance())
                                   .Set("version", version_)
                                   .Set("organisation", identity_.entry.organisation)
                                   .Build())
                      .status());
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kRosterLoaded)
                                   .Set("digest", DigestOf(identity_.files.roster_note))
                                   .Set("version", identity_.roster.version)
                                   .Build())
                      .status());
  return OkStatus();
}

// Offers cannot be answered without knowing the trainer and its data: it comes first.
Status Agent::WaitForTrainer(const std::stop_token& stop) {
  bool told = false;
  while (!stop.stop_requested()) {
    Status connected = trainer_.Connect();
    if (connected.ok()) {
      const HelloMessage hello = *trainer_.Facts();
      const auto stands = [&hello](SandboxLayer layer) {
        return std::find(hello.sandbox.begin(), hello.sandbox.end(), layer) != hello.sandbox.end();
      };
      const policy::SandboxNetwork network = NetworkOf(hello);
      return books_
          ->Append(audit::EventBuilder(audit::EventType::kSandboxActive)
                       .Set("program", "trainer")
                       .Set("network", network == policy::SandboxNetwork::kUnset
                                           ? "unknown"
                                           : policy::Code(network))
                       .Set("landlock", stands(SandboxLayer::kLandlock))
                       .Set("seccomp", stands(SandboxLayer::kSystemCalls))
                       .Set("namespaces", stands(SandboxLayer::kNetworkNamespace))
                       .Set("landlock_abi", hello.landlock_abi)
                       .Build())
          .status();
    }
    if (connected.code() != StatusCode::kUnavailable && connected.code() != StatusCode::kNotFound) {
      return connected;
    }
    if (!told) {
      LogInfo("waiting for the trainer at `" + config_.trainer_socket + "`");
      told = true;
    }
    WaitFor(kFirstRetry, stop);
  }
  return OkStatus();
}

void Agent::AskReload() {
  reload_asked_ = true;
  events_.Push(ReloadAsked{});
}

Status Agent::LookAtPolicies() {
  const std::optional<WallTime> due = keeper_->NextLook();
  if (!reload_asked_.exchange(false) && !(due && *due <= clock_.Now())) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(OwnPolicies now, keeper_->Look());
  const bool same = now.site_text == policies_.site_text &&
                    now.federation_text == policies_.federation_text &&
                    now.facts_text == policies_.facts_text;
  if (same) {
    return OkStatus();
  }
  policies_ = std::move(now);
  LogInfo("policies were loaded anew: version " + std::to_string(policies_.site.identity.version) +
          " of the site's is in force");
  return Error(StatusCode::kUnavailable, "the policies in force have changed");
}

// What is told meanwhile, the next connection finds for itself.
void Agent::WaitToComeBack(std::chrono::milliseconds time, const std::stop_token& stop) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (const std::optional<AgentEvent> event = events_.Next(until, stop)) {
    if (std::holds_alternative<ReloadAsked>(*event)) {
      return;
    }
  }
}

Status Agent::Run(const std::stop_token& stop, const std::function<void()>& ready) {
  // Before anything is said or written: whoever showed the head once may keep it back now.
  RETURN_IF_ERROR(books_->CheckNotBehind());
  RETURN_IF_ERROR(LogStart());
  ASSIGN_OR_RETURN(policies_, keeper_->Look());
  RETURN_IF_ERROR(TakeDenials(nullptr));
  RETURN_IF_ERROR(WaitForTrainer(stop));
  std::chrono::milliseconds wait = kFirstRetry;
  while (!stop.stop_requested()) {
    was_ready_ = false;
    come_back_after_ = {};
    // A change is told by the connection that is made next.
    if (Status looked = LookAtPolicies();
        !looked.ok() && looked.code() != StatusCode::kUnavailable) {
      return looked;
    }
    Status ended = RunConnection(stop, ready);
    current_.Set(nullptr);
    if (stop.stop_requested()) {
      break;
    }
    if (IsFinal(ended)) {
      return ended;
    }
    wait = was_ready_ ? kFirstRetry : std::min(wait * 2, kLongestRetry);
    LogWarning("not connected to `" + config_.aggregator + "`, trying again: " +
               std::string(ended.ok() ? "the aggregator ended the connection" : Message(ended)));
    WaitToComeBack(
        std::max<std::chrono::milliseconds>(wait, std::min(come_back_after_, kLongestComeBack)),
        stop);
  }
  runner_ = nullptr;  // cancels what is under way; it is in the outbox, or never left
  return books_
      ->Append(audit::EventBuilder(audit::EventType::kAgentStopped)
                   .Set("instance", books_->Instance())
                   .Build())
      .status();
}

}  // namespace domicile::site_agent
