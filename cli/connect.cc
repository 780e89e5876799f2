#include "cli/connect.h"

#include <chrono>
#include <utility>

#include <CLI/CLI.hpp>

#include "policy/reason.h"
#include "wire/tls.h"

namespace domicile::cli {

namespace {

constexpr std::chrono::seconds kConnectTimeout{15};

}  // namespace

void AddConnectOptions(CLI::App& command, ConnectOptions& options) {
  command.add_option("--aggregator", options.aggregator, "HOST:PORT of the aggregator")
      ->envname("DOMICILE_AGGREGATOR")
      ->required();
  command.add_option("--identity", options.identity, "your identity folder (`domicile ca issue`)")
      ->envname("DOMICILE_IDENTITY")
      ->required();
}

StatusOr<std::unique_ptr<wire::AdminClient>> ConnectAsOperator(const ConnectOptions& options,
                                                               const Clock& clock) {
  RETURN_IF_ERROR(wire::RequireTls13());
  ASSIGN_OR_RETURN(const contracts::Identity identity,
                   contracts::LoadIdentity(options.identity, crypto::Role::kOperator, clock.Now()));
  wire::ClientOptions client;
  client.address = options.aggregator;
  client.identity = {.key_pem = std::string(identity.files.tls_key.Text()),
                     .chain_pem = identity.files.tls_chain,
                     .roots_pem = identity.files.root};
  client.peer.federation = identity.Name().federation;
  client.peer.roles = {crypto::Role::kAggregator};
  client.peer.rule = [roster = identity.roster](const crypto::PeerIdentity& peer) {
    const contracts::PeerCheck check =
        contracts::CheckPeer(roster, peer, crypto::Role::kAggregator);
    return check.reason == policy::Reason::kNone
               ? OkStatus()
               : Error(StatusCode::kUnauthenticated, "the aggregator's certificate is refused: " +
                                                         std::string(policy::Code(check.reason)));
  };
  client.clock = &clock;
  return wire::AdminClient::Connect(client, {.timeout = kConnectTimeout, .stop = {}});
}

}  // namespace domicile::cli
