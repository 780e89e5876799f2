#include "tests/support/test_server.h"

#include <cstdio>

#include <grpcpp/create_channel.h>

#include "wire/address.h"
#include "wire/tls.h"

namespace domicile::test {

TestServer::TestServer(const std::function<void(wire::ServerOptions&)>& change,
                       wire::AdminHandler* admin)
    : authority(kTestFederation) {
  const TestParty own = authority.Aggregator();
  wire::ServerOptions options;
  options.address = "127.0.0.1:0";
  options.identity = {own.key_pem, own.chain_pem, authority.RootPem()};
  options.peer.federation = kTestFederation;
  options.peer.rule = [](const crypto::PeerIdentity& peer) {
    return peer.spiffe.name == "stranger"
               ? Error(StatusCode::kPermissionDenied, "`stranger` is not in the roster")
               : OkStatus();
  };
  options.peer.on_refused = [this](const Status& why) {
    refusals_signal_.Update([&] { refusals_.push_back(why); });
  };
  options.clock = &clock;
  if (change) {
    change(options);
  }
  auto started = wire::FederationServer::Start(options, federation, admin);
  if (!started.ok()) {
    std::fprintf(stderr, "%s\n", ToString(started.status()).c_str());
  }
  DOMICILE_CHECK(started.ok());
  server_ = *std::move(started);
  port_ = wire::ParseAddress(server_->Address())->port;
}

wire::ClientOptions TestServer::ClientFor(const TestParty& party, const std::string& host) {
  wire::ClientOptions options;
  options.address = host + ":" + std::to_string(port_);
  options.identity = {party.key_pem, party.chain_pem, authority.RootPem()};
  options.peer.federation = kTestFederation;
  options.peer.roles = {crypto::Role::kAggregator};
  options.peer.rule = [](const crypto::PeerIdentity&) { return OkStatus(); };
  options.clock = &clock;
  return options;
}

StatusOr<std::unique_ptr<wire::FederationClient>> TestServer::Connect(const TestParty& party,
                                                                      const std::string& host) {
  return wire::FederationClient::Connect(ClientFor(party, host),
                                         {.timeout = std::chrono::seconds(10), .stop = {}});
}

std::shared_ptr<grpc::Channel> TestServer::RawChannel(const TestParty& party) {
  const wire::ClientOptions options = ClientFor(party);
  auto verifier = std::make_shared<wire::PeerVerifier>(options.peer, options.identity.roots_pem,
                                                       "127.0.0.1", clock);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                   wire::MakeChannelCredentials(options.identity, verifier),
                                   arguments);
}

std::vector<Status> TestServer::Refusals() {
  std::vector<Status> copy;
  refusals_signal_.Update([&] { copy = refusals_; });
  return copy;
}

}  // namespace domicile::test
