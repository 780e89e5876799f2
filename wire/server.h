// The aggregator's side of the protocol: one listening port, mutual TLS 1.3, two services.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "wire/credentials.h"
#include "wire/handlers.h"
#include "wire/settings.h"

namespace domicile::wire {

struct ServerOptions {
  std::string address;  // HOST:PORT to listen on; port 0: any free one
  TlsIdentity identity;
  // Whom to accept. `roles` is set by the server: sites for the federation service, operators for
  // the admin service. The rule is asked at the handshake and again at each call.
  PeerPolicy peer;
  TransportSettings transport;
  const Clock* clock = nullptr;  // required; outlives the server

  // How many uploads, and how many downloads, move bytes at the same time (2 x cores is right). The
  // others wait, each with one window of data at most.
  std::size_t transfer_slots = 4;
  // A transfer that moves nothing for so long is ended, so that it cannot hold its slot.
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(30);
  // Directives that may wait on one stream, by number and by size; more end the stream.
  std::size_t max_queued_directives = 256;
  std::size_t max_queued_bytes = std::size_t{32} << 20U;
};

// Thread-safe. Stops when destroyed.
class FederationServer {
 public:
  // Listens, tests that its own port takes TLS 1.3 only, and returns. The handlers outlive the
  // server; `admin` may be null: then there is no admin service.
  // Errors: kAlreadyExists (the port is in use), kInvalidArgument (address, PEM texts),
  // kPermissionDenied (a port below 1024), kFailedPrecondition (TLS 1.2 is accepted).
  static StatusOr<std::unique_ptr<FederationServer>> Start(const ServerOptions& options,
                                                           FederationHandler& federation,
                                                           AdminHandler* admin);
  virtual ~FederationServer() = default;

  // HOST:PORT with the port that was bound.
  virtual std::string Address() const = 0;

  // How many strangers were turned away: by the verifier, by the role, or by gRPC's own handshake
  // (see FailedHandshakes in wire/tls.h). For one log leaf a minute, not one each.
  virtual std::uint64_t RefusedPeers() const = 0;

  // Ends all streams and calls, after `grace` for those under way; when it returns, no handler is
  // running and none is called again. Each stream still gets its OnDisconnect. Idempotent. Not from
  // a handler.
  virtual void Stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace domicile::wire
