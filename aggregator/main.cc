// domicile-aggregator: reads its configuration, wires the parts, serves until it is asked to stop.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "aggregator/coordinator/config.h"
#include "aggregator/coordinator/coordinator.h"
#include "aggregator/coordinator/signed_policies.h"
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

// Serves until asked to stop; meanwhile one leaf a minute counts the strangers that were turned
// away.
void ServeUntilStopped(const Signals& signals, wire::FederationServer& server,
                       Coordinator& coordinator) {
  std::uint64_t told = 0;
  while (signals.Wait(kRefusedPeersPeriod) != Signals::Asked::kStop) {
    const std::uint64_t refused = server.RefusedPeers();
    if (refused > told) {
      coordinator.LogRefusedPeers(refused - told, kRefusedPeersPeriod);
      told = refused;
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
  ASSIGN_OR_RETURN(
      PolicyFiles policies,
      ReadPolicies(config.federation_policy, config.aggregator_policy, config.legal_facts));
  RETURN_IF_ERROR(CheckSigned(config, policies));
  if (config.policy_signers.none) {
    LogWarning(
        "policy_signers = \"none\": policies and legal facts are taken unsigned; whoever can "
        "write the files decides what this federation allows");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                   Coordinator::Open({.state_folder = config.state,
                                      .max_update_bytes = config.update_bytes,
                                      .version = DOMICILE_VERSION},
                                     std::move(identity), std::move(policies), clock, random));
  FederationService federation(*coordinator);
  AdminService admin(*coordinator, clock);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<wire::FederationServer> server,
      wire::FederationServer::Start(
          ServerOptionsFrom(config, coordinator->Self(), *coordinator, clock), federation, &admin));
  std::printf("ready: %s\n", server->Address().c_str());
  std::fflush(stdout);
  LogInfo("serving at " + server->Address() + ", start " + std::to_string(coordinator->Starts()));
  ServeUntilStopped(signals, *server, *coordinator);
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
