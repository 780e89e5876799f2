// domicile-aggregator: reads its configuration, wires the parts, serves until it is asked to stop.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "aggregator/coordinator/config.h"
#include "aggregator/coordinator/coordinator.h"
#include "aggregator/service/admin_service.h"
#include "aggregator/service/federation_service.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "contracts/identity.h"
#include "wire/open_files.h"
#include "wire/server.h"
#include "wire/tls.h"

namespace domicile::aggregator {
namespace {

constexpr std::uint64_t kLargestConfig = std::uint64_t{1} << 20U;
constexpr std::chrono::seconds kRefusedPeersPeriod{60};
constexpr std::chrono::milliseconds kShortestSleep{10};

wire::ServerOptions ServerOptionsFrom(const Config& config, const contracts::Identity& identity,
                                      const Coordinator& coordinator, const Clock& clock) {
  wire::ServerOptions options;
  options.address = config.listen;
  options.identity = {.key_pem = std::string(identity.files.tls_key.Text()),
                      .chain_pem = identity.files.tls_chain,
                      .roots_pem = identity.files.root};
  options.peer.federation = identity.Name().federation;
  options.peer.rule = [&coordinator](const crypto::PeerIdentity& peer) {
    return coordinator.CheckPeer(peer);
  };
  options.transport.window_bytes = config.window_bytes;
  options.clock = &clock;
  options.transfer_slots = config.upload_slots;
  return options;
}

// How long the program may sleep: a minute, or until a policy that waits is due.
std::chrono::milliseconds SleepOf(const Coordinator& coordinator, const Clock& clock) {
  const std::optional<WallTime> due = coordinator.NextLook();
  if (!due) {
    return kRefusedPeersPeriod;
  }
  return std::clamp<std::chrono::milliseconds>(
      std::chrono::ceil<std::chrono::milliseconds>(*due - clock.Now()), kShortestSleep,
      kRefusedPeersPeriod);
}

// Serves until asked to stop. Meanwhile policies are looked at when somebody asks or one is due,
// and at most one leaf a minute counts the strangers that were turned away.
void ServeUntilStopped(const Signals& signals, wire::FederationServer& server,
                       Coordinator& coordinator, const Clock& clock) {
  bool look = false;
  std::uint64_t told = 0;
  MonotonicTime told_at = clock.Monotonic();
  while (true) {
    const Signals::Asked asked = signals.Wait(SleepOf(coordinator, clock));
    if (asked == Signals::Asked::kStop) {
      return;
    }
    const std::optional<WallTime> due = coordinator.NextLook();
    look = look || asked == Signals::Asked::kReload || (due && *due <= clock.Now());
    if (look) {
      const Status looked = coordinator.LookAtPolicies();
      look = !looked.ok();
      if (look) {
        LogError("looking at the policies, trying again: " + std::string(Message(looked)));
      }
    }
    const std::uint64_t refused = server.RefusedPeers();
    const auto passed =
        std::chrono::duration_cast<std::chrono::seconds>(clock.Monotonic() - told_at);
    if (refused > told && passed >= kRefusedPeersPeriod) {
      coordinator.LogRefusedPeers(refused - told, passed);
      told = refused;
      told_at = clock.Monotonic();
    }
  }
}

Status Run(const std::string& config_path, const Signals& signals) {
  const SystemClock clock;
  SystemRandom random;
  RETURN_IF_ERROR(wire::RequireTls13());
  ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path, kLargestConfig));
  ASSIGN_OR_RETURN(const Config config, ParseConfig(text, config_path));
  ASSIGN_OR_RETURN(
      contracts::Identity identity,
      contracts::LoadIdentity(config.identity, crypto::Role::kAggregator, clock.Now()));
  const std::string place = identity.Name().jurisdiction;
  if (config.policy_signers.none) {
    LogWarning(
        "policy_signers = \"none\": policies and legal facts are taken unsigned; whoever can "
        "write the files decides what this federation allows");
  }
  ASSIGN_OR_RETURN(models::PretrainedModels pretrained,
                   models::PretrainedModels::Read(config.pretrained));
  ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                   Coordinator::Open({.state_folder = config.state,
                                      .max_update_bytes = config.update_bytes,
                                      .version = DOMICILE_VERSION,
                                      .policies = PolicyFilesOf(config, place),
                                      .pretrained = std::move(pretrained)},
                                     std::move(identity), clock, random));
  FederationService federation(*coordinator);
  AdminService admin(*coordinator, clock);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<wire::FederationServer> server,
      wire::FederationServer::Start(
          ServerOptionsFrom(config, coordinator->Self(), *coordinator, clock), federation, &admin));
  std::printf("ready: %s\n", server->Address().c_str());
  std::fflush(stdout);
  LogInfo("serving at " + server->Address() + ", start " + std::to_string(coordinator->Starts()));
  ServeUntilStopped(signals, *server, *coordinator, clock);
  server->Stop(std::chrono::seconds(2));
  coordinator->LogStopped();
  return OkStatus();
}

}  // namespace
}  // namespace domicile::aggregator

int main(int argc, char** argv) {
  return domicile::RunDaemon(
      {.program = "domicile-aggregator",
       .log = "aggregator",
       .description = "The aggregator of a federation: adds up what site agents send.",
       .version = DOMICILE_VERSION},
      argc, argv, domicile::aggregator::Run);
}
