// A site's client and a server of another make: what this version of the protocol does not know is
// refused, wherever it comes.
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "tests/support/fake_federation.h"
#include "tests/support/test_certificates.h"
#include "tests/support/test_server.h"
#include "wire/client.h"
#include "wire/credentials.h"
#include "wire/proto/federation.grpc.pb.h"

namespace domicile::wire {
namespace {

using test::FakeSite;
using test::kTestFederation;
using test::TestAuthority;
using test::TestParty;

// Says what it was given, and listens until the other end has gone.
class Foreign final : public v1::Federation::Service {
 public:
  grpc::Status Control(grpc::ServerContext* /*context*/,
                       grpc::ServerReaderWriter<v1::Directive, v1::SiteMessage>* stream) override {
    stream->Write(directive);
    v1::SiteMessage message;
    while (stream->Read(&message)) {
    }
    return grpc::Status::OK;
  }
  grpc::Status ProveConsistency(grpc::ServerContext* /*context*/,
                                const v1::ProveConsistencyRequest* /*request*/,
                                v1::ProveConsistencyResponse* response) override {
    *response = proof;
    return grpc::Status::OK;
  }

  v1::Directive directive;
  v1::ProveConsistencyResponse proof;
};

// An aggregator by its certificate, on loopback.
struct ForeignServer {
  ForeignServer() {
    const TestParty party = authority.Aggregator();
    PeerPolicy sites{.federation = kTestFederation,
                     .roles = {crypto::Role::kSite},
                     .rule = [](const crypto::PeerIdentity&) { return OkStatus(); },
                     .on_refused = {}};
    const TlsIdentity identity{party.key_pem, party.chain_pem, authority.RootPem()};
    const auto verifier = std::make_shared<PeerVerifier>(sites, authority.RootPem(), "", clock);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(identity, verifier), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    REQUIRE(server != nullptr);
  }
  ~ForeignServer() { server->Shutdown(std::chrono::system_clock::now()); }

  std::unique_ptr<FederationClient> Connect() {
    const TestParty site = authority.Site("charite");
    ClientOptions options;
    options.address = "127.0.0.1:" + std::to_string(port);
    options.identity = {site.key_pem, site.chain_pem, authority.RootPem()};
    options.peer.federation = kTestFederation;
    options.peer.roles = {crypto::Role::kAggregator};
    options.peer.rule = [](const crypto::PeerIdentity&) { return OkStatus(); };
    options.clock = &clock;
    auto client =
        FederationClient::Connect(options, {.timeout = std::chrono::seconds(10), .stop = {}});
    REQUIRE_MESSAGE(client.ok(), Message(client.status()));
    return *std::move(client);
  }

  SystemClock clock;
  TestAuthority authority{kTestFederation};
  Foreign service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

void AddNote(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(99, "a note");
}

}  // namespace

TEST_CASE("Foreign server: a directive with a field of another version is not handed on") {
  struct Case {
    const char* name;
    std::function<void(v1::Directive&)> change;
    bool arrives;
  };
  const Case cases[] = {
      {"as it should be", [](v1::Directive&) {}, true},
      {"a field beside the message", [](v1::Directive& d) { AddNote(d); }, false},
      {"a field within it", [](v1::Directive& d) { AddNote(*d.mutable_job_offer()); }, false},
      {"a field deep within it",
       [](v1::Directive& d) { AddNote(*d.mutable_job_offer()->mutable_base_model()); }, false},
      {"nothing that is known", [](v1::Directive& d) { d.Clear(); }, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    ForeignServer foreign;
    v1::JobOffer* offer = foreign.service.directive.mutable_job_offer();
    offer->set_job("heart-1");
    offer->set_plan("{}");
    offer->mutable_base_model()->set_digest(std::string(32, 'd'));
    c.change(foreign.service.directive);
    const auto client = foreign.Connect();
    FakeSite site;
    const auto stream = client->OpenControl(site);

    if (c.arrives) {
      REQUIRE(site.signal.Await([&] { return !site.directives.empty(); }));
      stream->Close();
      continue;
    }
    REQUIRE(site.signal.Await([&] { return !site.closed.empty(); }));
    CHECK(site.closed[0].code() == StatusCode::kInvalidArgument);
    CHECK(site.directives.empty());
    CHECK(stream->Tally().messages_in == 0);
  }
}

TEST_CASE("Foreign server: an answer with a field of another version is no answer") {
  ForeignServer foreign;
  foreign.service.proof.set_head("a head");
  const auto client = foreign.Connect();
  REQUIRE(client->ProveConsistency(0, {}).ok());
  AddNote(foreign.service.proof);

  CHECK(client->ProveConsistency(0, {}).status().code() == StatusCode::kInvalidArgument);
}

}  // namespace domicile::wire
