// Who is let in: real mutual TLS on loopback.
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <grpcpp/create_channel.h>

#include "tests/support/fake_admin.h"
#include "tests/support/test_server.h"
#include "wire/address.h"
#include "wire/client.h"
#include "wire/proto/admin.grpc.pb.h"
#include "wire/proto/federation.grpc.pb.h"
#include "wire/status.h"
#include "wire/tls.h"

namespace domicile::wire {
namespace {

using crypto::internal::NameKind;
using crypto::internal::SubjectName;
using test::TestAuthority;
using test::TestParty;
using test::TestServer;

Status Call(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ProveConsistencyResponse response;
  return FromGrpc(v1::Federation::NewStub(channel)->ProveConsistency(&context, {}, &response));
}

TEST_CASE("Peers: a site of the roster is let in, and named by its certificate") {
  TestServer server;
  const auto client = server.Connect(server.authority.Site("charite"));
  CAPTURE(ToString(client.status()));
  REQUIRE(client.ok());

  const auto answer = (*client)->ProveConsistency(7, {});

  REQUIRE(answer.ok());
  CHECK(answer->head() == "charite saw 7");
  CHECK((*client)->Server().spiffe.role == crypto::Role::kAggregator);
  CHECK((*client)->Server().spiffe.name == "main");
  CHECK(server.Server().RefusedPeers() == 0);
}

TEST_CASE("Peers: whoever is not a site of the roster reaches no handler, and is counted") {
  TestServer server;
  const TestAuthority other("fed.example");  // the same name, another root
  const std::vector<SubjectName> two_uris = {
      {NameKind::kUri, server.authority.SiteUri("charite")},
      {NameKind::kUri, server.authority.SiteUri("inselspital")}};
  const std::vector<SubjectName> other_federation = {
      {NameKind::kUri, "spiffe://other.example/jurisdiction/DE/site/charite"}};
  struct Case {
    const char* name;
    TestParty party;
  };
  const Case cases[] = {
      {"another authority", other.Site("charite")},
      {"expired", server.authority.ExpiredSite("charite")},
      {"two URI names", server.authority.WithNames("charite", two_uris, false)},
      {"another federation", server.authority.WithNames("charite", other_federation, false)},
      {"no SPIFFE name",
       server.authority.WithNames("charite", {{NameKind::kDns, "charite"}}, false)},
      {"a server's certificate",
       server.authority.WithNames("charite",
                                  {{NameKind::kUri, server.authority.SiteUri("charite")}}, true)},
      {"not in the roster", server.authority.Site("stranger")},
      {"an operator, where there is no admin service", server.authority.Operator("alice")},
      {"an aggregator", server.authority.Aggregator()},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::uint64_t before = server.Server().RefusedPeers();

    const Status status = Call(server.RawChannel(c.party));

    CHECK(status.code() == StatusCode::kUnavailable);  // all that TLS 1.3 tells the refused
    CHECK(server.Server().RefusedPeers() > before);
  }
  CHECK(server.federation.messages.empty());
  CHECK(Call(server.RawChannel(server.authority.Site("charite"))).ok());  // the control
}

TEST_CASE("Peers: a client without a certificate, or without TLS, gets nowhere") {
  TestServer server;
  const std::string address = "127.0.0.1:" + std::to_string(server.Port());
  grpc::SslCredentialsOptions no_certificate;
  no_certificate.pem_root_certs = server.authority.RootPem();
  const std::uint64_t before = server.Server().RefusedPeers();

  CHECK_FALSE(Call(grpc::CreateChannel(address, grpc::SslCredentials(no_certificate))).ok());
  CHECK_FALSE(Call(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())).ok());
  CHECK(server.Server().RefusedPeers() >= before + 2);
}

TEST_CASE("Peers: a refused site is told what is probably wrong; the server knows exactly") {
  TestServer server;

  const auto client = server.Connect(server.authority.Site("stranger"));

  CAPTURE(ToString(client.status()));
  CHECK(client.status().code() == StatusCode::kUnauthenticated);
  CHECK(Message(client.status()).find("closed the connection during the TLS handshake") !=
        std::string_view::npos);
  const std::vector<Status> refusals = server.Refusals();
  REQUIRE_FALSE(refusals.empty());
  CHECK(Message(refusals[0]) == "`stranger` is not in the roster");
}

TEST_CASE("Peers: an operator's certificate does not open the federation service") {
  test::FakeAdmin admin;
  TestServer server({}, &admin);
  const auto operator_channel = server.RawChannel(server.authority.Operator("alice"));
  const auto site_channel = server.RawChannel(server.authority.Site("charite"));
  const auto list = [](const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    return FromGrpc(v1::Admin::NewStub(channel)->ListJobs(&context, {}, &response));
  };

  CHECK(Call(operator_channel).code() == StatusCode::kPermissionDenied);
  CHECK(list(site_channel).code() == StatusCode::kPermissionDenied);
  CHECK(Call(site_channel).ok());
  CHECK(list(operator_channel).ok());
}

TEST_CASE("Peers: a revocation ends what a connection made before it may do") {
  std::atomic<bool> revoked{false};
  TestServer server([&](ServerOptions& options) {
    options.peer.rule = [&](const crypto::PeerIdentity&) {
      return revoked ? Error(StatusCode::kPermissionDenied, "revoked") : OkStatus();
    };
  });
  const auto client = server.Connect(server.authority.Site("charite"));
  REQUIRE(client.ok());
  REQUIRE((*client)->ProveConsistency(1, {}).ok());

  revoked = true;

  CHECK((*client)->ProveConsistency(1, {}).status().code() == StatusCode::kPermissionDenied);
}

TEST_CASE("Peers: the server's certificate must be valid for the host that was dialled (C23)") {
  const std::string raw_address("\x7f\x00\x00\x01", 4);
  struct Case {
    const char* name;
    const char* common_name;
    std::vector<SubjectName> names;
    bool by_name;
    bool by_address;
  };
  const Case cases[] = {
      {"cn_only", "localhost", {}, false, false},
      {"cn_ip", "127.0.0.1", {}, false, false},
      {"dns_san", "x", {{NameKind::kDns, "localhost"}}, true, false},
      {"ip_san", "x", {{NameKind::kIp, raw_address}}, false, true},
      {"ip_as_dns", "x", {{NameKind::kDns, "127.0.0.1"}}, false, false},
      {"cn_right_san_wrong", "localhost", {{NameKind::kDns, "other.example"}}, false, false},
      {"wildcard", "x", {{NameKind::kDns, "*"}}, false, false},
      {"email_san", "x", {{NameKind::kEmail, "localhost"}}, false, false},
      {"longer_name", "x", {{NameKind::kDns, "localhost.evil.example"}}, false, false},
  };
  TestServer server;  // for its authority and its fake
  const TestAuthority* authority = &server.authority;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::vector<SubjectName> names = {{NameKind::kUri, authority->AggregatorUri()}};
    names.insert(names.end(), c.names.begin(), c.names.end());
    const TestParty own = authority->WithNames(c.common_name, names, true);
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.identity = {own.key_pem, own.chain_pem, authority->RootPem()};
    options.peer.federation = test::kTestFederation;
    options.peer.rule = [](const crypto::PeerIdentity&) { return OkStatus(); };
    options.clock = &server.clock;
    const auto under_test = FederationServer::Start(options, server.federation, nullptr);
    REQUIRE(under_test.ok());
    const std::uint16_t port = ParseAddress((*under_test)->Address())->port;

    for (const bool by_name : {true, false}) {
      CAPTURE(by_name);
      ClientOptions client = server.ClientFor(authority->Site("charite"));
      client.address = PrintAddress({by_name ? "localhost" : "127.0.0.1", port});

      const auto connected =
          FederationClient::Connect(client, {.timeout = std::chrono::seconds(10), .stop = {}});

      CAPTURE(ToString(connected.status()));
      const bool wanted = by_name ? c.by_name : c.by_address;
      CHECK(connected.ok() == wanted);
      if (!wanted) {
        CHECK(connected.status().code() == StatusCode::kUnauthenticated);
        CHECK(Message(connected.status()).find(by_name ? "localhost" : "127.0.0.1") !=
              std::string_view::npos);
      }
    }
  }
}

TEST_CASE("Peers: a site does not speak to what is not its aggregator") {
  TestServer server;
  const TestParty site = server.authority.Site("charite");
  const CallLimits limits = {.timeout = std::chrono::seconds(10), .stop = {}};

  ClientOptions not_in_roster = server.ClientFor(site);
  not_in_roster.peer.rule = [](const crypto::PeerIdentity& peer) {
    return Error(StatusCode::kPermissionDenied, "`" + peer.spiffe.name + "` has another key");
  };
  ClientOptions wrong_role = server.ClientFor(site);
  wrong_role.peer.roles = {crypto::Role::kSite};
  ClientOptions no_rule = server.ClientFor(site);
  no_rule.peer.rule = nullptr;
  ClientOptions no_roles = server.ClientFor(site);
  no_roles.peer.roles = {};

  const auto denied = FederationClient::Connect(not_in_roster, limits).status();
  CHECK(denied.code() == StatusCode::kPermissionDenied);
  CHECK(Message(denied).find("`main` has another key") != std::string_view::npos);
  CHECK(FederationClient::Connect(wrong_role, limits).status().code() ==
        StatusCode::kUnauthenticated);
  CHECK(FederationClient::Connect(no_rule, limits).status().code() == StatusCode::kUnauthenticated);
  CHECK(FederationClient::Connect(no_roles, limits).status().code() ==
        StatusCode::kUnauthenticated);
}

TEST_CASE("Peers: what is wrong at home is said before anything is sent") {
  TestServer server;
  const CallLimits limits = {.timeout = std::chrono::seconds(10), .stop = {}};
  ClientOptions expired = server.ClientFor(server.authority.ExpiredSite("charite"));
  ClientOptions mixed = server.ClientFor(server.authority.Site("charite"));
  mixed.identity.key_pem = server.authority.Site("charite").key_pem;
  ClientOptions no_port = server.ClientFor(server.authority.Site("charite"));
  no_port.address = "127.0.0.1";

  CHECK(FederationClient::Connect(expired, limits).status().code() == StatusCode::kUnauthenticated);
  CHECK(FederationClient::Connect(mixed, limits).status().code() == StatusCode::kUnauthenticated);
  CHECK(FederationClient::Connect(no_port, limits).status().code() == StatusCode::kInvalidArgument);
  CHECK(server.Server().RefusedPeers() == 0);
}

TEST_CASE("Peers: where nothing listens, the error says so") {
  TestServer server;
  ClientOptions options = server.ClientFor(server.authority.Site("charite"));
  server.Server().Stop(std::chrono::milliseconds(0));

  const auto client =
      FederationClient::Connect(options, {.timeout = std::chrono::seconds(10), .stop = {}});

  CHECK(client.status().code() == StatusCode::kUnavailable);
  CHECK(Message(client.status()).find("nothing listens") != std::string_view::npos);
}

TEST_CASE("Peers: a port in use is an error that says what to do") {
  TestServer server;
  const TestParty own = server.authority.Aggregator();
  ServerOptions options;
  options.address = server.Server().Address();
  options.identity = {own.key_pem, own.chain_pem, server.authority.RootPem()};
  options.peer.federation = test::kTestFederation;
  options.clock = &server.clock;

  const Status status = FederationServer::Start(options, server.federation, nullptr).status();

  CHECK(status.code() == StatusCode::kAlreadyExists);
  CHECK(Message(status).find(options.address) != std::string_view::npos);
}

}  // namespace
}  // namespace domicile::wire
