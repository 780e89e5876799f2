// Mutual TLS with our own rule of who a peer is.
//
// gRPC checks the path, the signatures and the dates; then crypto::VerifyPeerCertificate checks
// everything once more and reads the SPIFFE name; then the caller's rule (roster, revocations)
// speaks. Only what passes all three is a peer. The name in a message never counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "crypto/certificate.h"

namespace grpc {
class ChannelCredentials;
class ServerContextBase;
class ServerCredentials;
}  // namespace grpc

namespace domicile::wire {

// What this process shows and whom it trusts, as PEM texts.
struct TlsIdentity {
  std::string key_pem;
  std::string chain_pem;  // leaf first
  std::string roots_pem;  // the federation's root; nothing of the system's store is ever trusted
};

// Whether a peer with a good certificate may be spoken to: in the roster, not revoked. Anything but
// OK refuses. Called on threads of gRPC, at each handshake and at each call, from several at once:
// it must be thread-safe and quick.
using PeerRule = std::function<Status(const crypto::PeerIdentity&)>;

// Who is admitted. An empty list of roles or an absent rule admits nobody.
struct PeerPolicy {
  std::string federation;           // the trust domain
  std::vector<crypto::Role> roles;  // that the peer may have
  PeerRule rule;
  // Told of each refusal made here, with the reason (never with key material). May be absent.
  // Thread-safe and quick, like the rule. Do not write one log leaf for each: strangers call it.
  std::function<void(const Status&)> on_refused;
};

// Decides who a peer is. One for each server or channel. Thread-safe.
class PeerVerifier {
 public:
  // `clock` outlives the verifier. `host` is what was dialled, for a client; empty for a server.
  PeerVerifier(PeerPolicy policy, std::string roots_pem, std::string host, const Clock& clock);

  // At the handshake. Counts refusals, and tells on_refused. Errors: kUnauthenticated (the
  // certificate, its role, or the host), or what the rule said.
  StatusOr<crypto::PeerIdentity> Verify(std::string_view leaf_pem, std::string_view chain_pem);

  // In a handler: the identity of the caller, from the certificate of the connection. The path is
  // verified again the first time a certificate is seen; dates, the role the call wants and the
  // rule every time. Counts refusals too. Errors: kUnauthenticated, kPermissionDenied (another
  // role), or what the rule said.
  StatusOr<crypto::PeerIdentity> PeerOf(const grpc::ServerContextBase& context, crypto::Role role);

  // Refusals so far; the last one, OK if a peer has been admitted since at a handshake.
  std::uint64_t Refusals() const { return refusals_; }
  Status LastRefusal() const;
  // The peer admitted last at a handshake; empty if there was none.
  crypto::PeerIdentity LastPeer() const;

 private:
  StatusOr<crypto::PeerIdentity> Check(const std::string& chain_pem);
  StatusOr<crypto::PeerIdentity> Admit(crypto::PeerIdentity peer) const;
  StatusOr<crypto::PeerIdentity> Refuse(Status why);

  const PeerPolicy policy_;
  const std::string roots_pem_;
  const std::string host_;
  const Clock& clock_;
  std::atomic<std::uint64_t> refusals_{0};

  mutable Mutex mutex_;
  Status last_refusal_ GUARDED_BY(mutex_);
  crypto::PeerIdentity last_peer_ GUARDED_BY(mutex_);
  // By the whole chain, not by the serial number: a serial is only unique within one authority.
  std::map<std::string, crypto::PeerIdentity, std::less<>> verified_ GUARDED_BY(mutex_);
};

// Credentials of gRPC for the identity, with the verifier in the handshake. The server requires
// a certificate of its client. shared_ptr: gRPC keeps the verifier as long as it keeps connections.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const TlsIdentity& identity, std::shared_ptr<PeerVerifier> verifier);
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const TlsIdentity& identity, std::shared_ptr<PeerVerifier> verifier);

}  // namespace domicile::wire
