#include "wire/internal/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "wire/address.h"
#include "wire/proto/federation.grpc.pb.h"
#include "wire/status.h"
#include "wire/tls.h"

namespace domicile::wire::internal {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);  // how often a wait looks at the stop token
constexpr auto kWhyTimeout = std::chrono::seconds(2);
constexpr std::string_view kNoConnection = "failed to connect to all addresses";

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "No limit" is often written as the greatest number, which cannot be added to the time.
std::chrono::system_clock::time_point DeadlineOf(const CallLimits& limits) {
  constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 365);
  return std::chrono::system_clock::now() + std::min(limits.timeout, kMost);
}

grpc::ChannelArguments Arguments(const TransportSettings& settings, const Address& address) {
  grpc::ChannelArguments out;
  // A fixed window instead of probing: the receiver's memory stays bounded (docs/formats/wire.md).
  out.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  out.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, settings.window_bytes);
  out.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(settings.keepalive.count()));
  out.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(settings.keepalive_timeout.count()));
  out.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  out.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  out.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
             static_cast<int>(settings.reconnect_first.count()));
  // In spite of its name: how long gRPC lets one attempt take.
  out.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(settings.connect_timeout.count()));
  out.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(settings.reconnect_most.count()));
  out.SetMaxReceiveMessageSize(settings.max_message_bytes);
  out.SetMaxSendMessageSize(settings.max_message_bytes);
  // Nothing in the DNS may configure this client, and nothing is sent twice behind our back.
  out.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  out.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  out.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (IsLoopback(address.host)) {
    out.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  }
  return out;
}

Status CheckOwnIdentity(const ClientOptions& options) {
  const auto own = crypto::VerifyPeerCertificate(
      options.identity.chain_pem, options.identity.roots_pem,
      {.federation = options.peer.federation, .is_server = false, .now = options.clock->Now()});
  RETURN_IF_ERROR(Annotate(own.status(), "our own certificate"));
  return crypto::CheckKeyMatches(options.identity.key_pem, options.identity.chain_pem);
}

}  // namespace

CallContext::CallContext(const CallLimits& limits) : stop_(limits.stop, Cancel{&context_}) {
  context_.set_deadline(DeadlineOf(limits));
}

Connection::Connection(std::string address, std::shared_ptr<PeerVerifier> verifier,
                       std::shared_ptr<grpc::Channel> channel)
    : address_(std::move(address)), verifier_(std::move(verifier)), channel_(std::move(channel)) {}

StatusOr<std::unique_ptr<Connection>> Connection::Open(const ClientOptions& options,
                                                       const CallLimits& limits) {
  DOMICILE_CHECK(options.clock != nullptr);
  RETURN_IF_ERROR(RequireTls13());
  ASSIGN_OR_RETURN(const Address address, ParseAddress(options.address));
  RETURN_IF_ERROR(CheckOwnIdentity(options));
  auto verifier = std::make_shared<PeerVerifier>(options.peer, options.identity.roots_pem,
                                                 address.host, *options.clock);
  auto channel = grpc::CreateCustomChannel("dns:///" + PrintAddress(address),
                                           MakeChannelCredentials(options.identity, verifier),
                                           Arguments(options.transport, address));
  std::unique_ptr<Connection> connection(
      new Connection(PrintAddress(address), std::move(verifier), std::move(channel)));
  const auto deadline = DeadlineOf(limits);
  while (true) {
    const grpc_connectivity_state state = connection->channel_->GetState(true);
    if (state == GRPC_CHANNEL_READY) {
      return connection;
    }
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      return connection->WhyNotConnected();
    }
    if (limits.stop.stop_requested()) {
      return Error(StatusCode::kCancelled, "connecting to `" + options.address + "` was stopped");
    }
    const auto now = std::chrono::system_clock::now();
    if (now >= deadline) {
      return Error(StatusCode::kDeadlineExceeded,
                   "`" + options.address +
                       "` did not complete a connection in time; a firewall may drop packets");
    }
    connection->channel_->WaitForStateChange(state, std::min(deadline, now + kLook));
  }
}

// A failed channel tells its reason only to a call.
Status Connection::WhyNotConnected() const {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kWhyTimeout);
  v1::ProveConsistencyResponse response;
  const auto stub = v1::Federation::NewStub(channel_);
  const grpc::Status status = stub->ProveConsistency(&context, {}, &response);
  const Status why = Explain(status);
  return why.ok() ? Error(StatusCode::kUnavailable,
                          "the connection to `" + address_ + "` failed at first; try again")
                  : why;
}

Status Connection::Explain(const grpc::Status& status) const {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      Has(status.error_message(), kNoConnection)) {
    return Diagnose(status.error_message());
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      Has(status.error_message(), "DNS resolution failed")) {
    return Error(StatusCode::kUnavailable,
                 "the host of `" + address_ + "` is not found in the DNS");
  }
  return FromGrpc(status);
}

Status Connection::Diagnose(const std::string& text) const {
  if (const Status refusal = verifier_->LastRefusal(); !refusal.ok()) {
    return Annotate(refusal, "the server at `" + address_ + "` is not accepted");
  }
  if (Has(text, "Connection refused")) {
    return Error(StatusCode::kUnavailable,
                 "nothing listens at `" + address_ +
                     "`; is the aggregator running, and is this its address?");
  }
  if (Has(text, "certificate verify failed") || Has(text, "CERTIFICATE_VERIFY_FAILED")) {
    return Error(StatusCode::kUnauthenticated,
                 "the certificate of `" + address_ +
                     "` is not valid under the federation's root: another server, an expired "
                     "certificate, or a proxy between that signs its own (exempt this address)");
  }
  if (Has(text, "WRONG_VERSION_NUMBER") || Has(text, "wrong version number")) {
    return Error(StatusCode::kUnauthenticated,
                 "the server at `" + address_ + "` does not speak TLS");
  }
  if (Has(text, "Socket closed") || Has(text, "Connection reset") || Has(text, "Broken pipe") ||
      Has(text, "Endpoint closed")) {
    // In TLS 1.3 a server refuses a certificate when the client believes to be done.
    return Error(StatusCode::kUnauthenticated,
                 "the aggregator at `" + address_ +
                     "` closed the connection during the TLS handshake: probably it does not "
                     "accept this certificate (roster, role, validity; its log has the reason)");
  }
  return Error(StatusCode::kUnavailable, "no connection to `" + address_ + "`: " + text);
}

}  // namespace domicile::wire::internal
