// A FederationServer on loopback with a fake behind it, and clients of every kind for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/channel.h>

#include "base/clock.h"
#include "tests/support/fake_federation.h"
#include "tests/support/test_certificates.h"
#include "wire/client.h"
#include "wire/server.h"

namespace domicile::test {

// One thread at a time.
class TestServer {
 public:
  // `change` may alter the options before the server starts.
  explicit TestServer(const std::function<void(wire::ServerOptions&)>& change = {},
                      wire::AdminHandler* admin = nullptr);

  int Port() const { return port_; }
  wire::FederationServer& Server() { return *server_; }

  // Options of a client that does everything right, but for the party.
  wire::ClientOptions ClientFor(const TestParty& party, const std::string& host = "127.0.0.1");
  StatusOr<std::unique_ptr<wire::FederationClient>> Connect(const TestParty& party,
                                                            const std::string& host = "127.0.0.1");
  // A bare gRPC channel with the party's certificate, as another program would have. It is not
  // connected yet.
  std::shared_ptr<grpc::Channel> RawChannel(const TestParty& party);

  // Refusals that the server has told of, oldest first.
  std::vector<Status> Refusals();

  SystemClock clock;
  TestAuthority authority;
  FakeFederation federation;

 private:
  Signal refusals_signal_;
  std::vector<Status> refusals_;
  std::unique_ptr<wire::FederationServer> server_;
  int port_ = 0;
};

inline constexpr const char* kTestFederation = "fed.example";

}  // namespace domicile::test
