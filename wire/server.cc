#include "wire/server.h"

#include <atomic>
#include <cerrno>
#include <utility>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/mutex.h"
#include "wire/address.h"
#include "wire/internal/admin_service.h"
#include "wire/internal/control_server.h"
#include "wire/internal/federation_service.h"
#include "wire/internal/transfers.h"
#include "wire/tls.h"

namespace domicile::wire {
namespace {

constexpr auto kShortestPing = std::chrono::seconds(20);  // a site may ping no faster

PeerPolicy WithRoles(PeerPolicy policy, bool admin) {
  policy.roles = {crypto::Role::kSite};
  if (admin) {
    policy.roles.push_back(crypto::Role::kOperator);
  }
  return policy;
}

void SetArguments(grpc::ServerBuilder& builder, const TransportSettings& settings) {
  // A fixed window instead of probing: memory stays bounded (docs/formats/wire.md).
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, settings.window_bytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             static_cast<int>(settings.keepalive.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(settings.keepalive_timeout.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  const auto shortest = std::min<std::chrono::milliseconds>(kShortestPing, settings.keepalive / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(shortest.count()));
  // Two aggregators on one port would each get half of the sites, and neither would notice.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(settings.max_message_bytes);
  builder.SetMaxSendMessageSize(settings.max_message_bytes);
}

// gRPC only says that it could not bind; binding once more says why.
Status WhyNotBound(const Address& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  const std::string where = "`" + PrintAddress(address) + "`";
  if (::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list) != 0) {
    return Error(StatusCode::kInvalidArgument, where + ": this host has no such address");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  const FileHandle handle(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = 1;  // as gRPC does: connections that linger are not in the way
  ::setsockopt(handle.descriptor(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  if (::bind(handle.descriptor(), list->ai_addr, list->ai_addrlen) == 0) {
    return Error(StatusCode::kUnavailable, "listening on " + where + " failed; try again");
  }
  switch (errno) {
    case EADDRINUSE:
      return Error(StatusCode::kAlreadyExists,
                   "another program listens on " + where +
                       "; end it, or choose another port (0: any free one)");
    case EACCES:
      return Error(StatusCode::kPermissionDenied,
                   "this user may not listen on " + where + "; choose a port above 1023");
    case EADDRNOTAVAIL:
      return Error(StatusCode::kInvalidArgument, where + ": this host has no such address");
    default:
      return ErrnoError(errno, "listening on " + where);
  }
}

// Where a server that listens there can be reached from here.
Address OwnView(Address address) {
  if (address.host == "0.0.0.0") {
    address.host = "127.0.0.1";
  } else if (address.host == "::") {
    address.host = "::1";
  }
  return address;
}

class GrpcFederationServer final : public FederationServer {
 public:
  GrpcFederationServer(const ServerOptions& options, FederationHandler& federation,
                       AdminHandler* admin)
      : options_(options),
        verifier_(std::make_shared<PeerVerifier>(WithRoles(options.peer, admin != nullptr),
                                                 options.identity.roots_pem, std::string(),
                                                 *options.clock)),
        transfers_(options.transfer_slots, options.stall_timeout, *options.clock),
        streams_(federation, {options.max_queued_directives, options.max_queued_bytes},
                 *options.clock),
        federation_(federation, *verifier_, streams_, transfers_) {
    if (admin != nullptr) {
      admin_ = std::make_unique<internal::AdminService>(*admin, *verifier_, transfers_, stopping_);
    }
  }

  ~GrpcFederationServer() override { Stop(std::chrono::milliseconds(0)); }

  Status Listen() {
    ASSIGN_OR_RETURN(address_, ParseAddress(options_.address));
    grpc::ServerBuilder builder;
    SetArguments(builder, options_.transport);
    int port = 0;
    builder.AddListeningPort(PrintAddress(address_),
                             MakeServerCredentials(options_.identity, verifier_), &port);
    builder.RegisterService(&federation_);
    if (admin_ != nullptr) {
      builder.RegisterService(admin_.get());
    }
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port <= 0) {
      return WhyNotBound(address_);
    }
    address_.port = static_cast<std::uint16_t>(port);
    RETURN_IF_ERROR(CheckOnlyTls13(PrintAddress(OwnView(address_))));
    failed_before_ = FailedHandshakes();
    watch_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
    return OkStatus();
  }

  std::string Address() const override { return PrintAddress(address_); }

  std::uint64_t RefusedPeers() const override {
    return verifier_->Refusals() + FailedHandshakes() - failed_before_;
  }

  void Stop(std::chrono::milliseconds grace) override {
    const MutexLock lock(stop_mutex_);
    if (stopping_.exchange(true) || server_ == nullptr) {
      return;
    }
    transfers_.Stop();
    streams_.EndAll(Error(StatusCode::kUnavailable, "the aggregator is stopping"));
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    streams_.Stop();  // after the last reactor is done
    watch_ = std::jthread();
  }

 private:
  // Ends what does not move, until stopped.
  void Watch(const std::stop_token& stop) {
    Mutex mutex;
    std::condition_variable_any wake;
    while (!stop.stop_requested()) {
      {
        MutexLock lock(mutex);
        wake.wait_for(mutex, stop, options_.stall_timeout / 4, [] { return false; });
      }
      transfers_.CancelStalled();
      streams_.CancelStuck(options_.clock->Monotonic() - options_.stall_timeout);
    }
  }

  const ServerOptions options_;
  wire::Address address_;
  const std::shared_ptr<PeerVerifier> verifier_;  // gRPC's connections are the other owners
  std::atomic<bool> stopping_{false};
  std::uint64_t failed_before_ = 0;
  internal::Transfers transfers_;
  internal::ControlStreams streams_;
  internal::FederationService federation_;
  std::unique_ptr<internal::AdminService> admin_;
  std::unique_ptr<grpc::Server> server_;

  Mutex stop_mutex_;
  std::jthread watch_;
};

}  // namespace

StatusOr<std::unique_ptr<FederationServer>> FederationServer::Start(const ServerOptions& options,
                                                                    FederationHandler& federation,
                                                                    AdminHandler* admin) {
  DOMICILE_CHECK(options.clock != nullptr);
  RETURN_IF_ERROR(RequireTls13());
  const auto own = crypto::VerifyPeerCertificate(
      options.identity.chain_pem, options.identity.roots_pem,
      {.federation = options.peer.federation, .is_server = true, .now = options.clock->Now()});
  RETURN_IF_ERROR(Annotate(own.status(), "our own certificate"));
  RETURN_IF_ERROR(crypto::CheckKeyMatches(options.identity.key_pem, options.identity.chain_pem));
  auto server = std::make_unique<GrpcFederationServer>(options, federation, admin);
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace domicile::wire
