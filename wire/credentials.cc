#include "wire/credentials.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <grpc/grpc_security.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_context.h>

#include "wire/status.h"

namespace domicile::wire {
namespace {

namespace experimental = grpc::experimental;

constexpr std::size_t kMaxRemembered = 4096;  // certificates; a few MB

std::string_view View(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// OpenSSL's list of what the peer sent lacks the leaf where the peer is the client.
std::string WholeChain(std::string_view leaf_pem, std::string_view chain_pem) {
  if (chain_pem.starts_with(leaf_pem)) {
    return std::string(chain_pem);
  }
  return std::string(leaf_pem) + std::string(chain_pem);
}

// Called by gRPC when its own checks have passed.
class HandshakeVerifier final : public experimental::ExternalCertificateVerifier {
 public:
  explicit HandshakeVerifier(std::shared_ptr<PeerVerifier> verifier)
      : verifier_(std::move(verifier)) {}
  ~HandshakeVerifier() override = default;

  bool Verify(experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* sync_status) override {
    const auto& peer = request->c_request()->peer_info;
    const auto result = verifier_->Verify(View(peer.peer_cert), View(peer.peer_cert_full_chain));
    *sync_status = ToGrpc(result.status());
    return true;  // decided here and now
  }
  void Cancel(experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  std::shared_ptr<PeerVerifier> verifier_;  // gRPC outlives the server object with its connections
};

template <typename Options>
void Fill(Options& options, std::shared_ptr<PeerVerifier> verifier) {
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      experimental::ExternalCertificateVerifier::Create<HandshakeVerifier>(std::move(verifier)));
}

std::shared_ptr<experimental::CertificateProviderInterface> Provider(const TlsIdentity& identity) {
  return std::make_shared<experimental::StaticDataCertificateProvider>(
      identity.roots_pem,
      std::vector<experimental::IdentityKeyCertPair>{{identity.key_pem, identity.chain_pem}});
}

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.size() == 1 ? std::string(values[0].begin(), values[0].end()) : std::string();
}

}  // namespace

PeerVerifier::PeerVerifier(PeerPolicy policy, std::string roots_pem, std::string host,
                           const Clock& clock)
    : policy_(std::move(policy)),
      roots_pem_(std::move(roots_pem)),
      host_(std::move(host)),
      clock_(clock) {}

StatusOr<crypto::PeerIdentity> PeerVerifier::Refuse(Status why) {
  refusals_.fetch_add(1, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    last_refusal_ = why;
  }
  if (policy_.on_refused) {
    policy_.on_refused(why);
  }
  return why;
}

StatusOr<crypto::PeerIdentity> PeerVerifier::Check(const std::string& chain_pem) {
  const WallTime now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    const auto known = verified_.find(chain_pem);
    if (known != verified_.end() && now < known->second.not_after) {
      return known->second;
    }
  }
  ASSIGN_OR_RETURN(
      const crypto::PeerIdentity peer,
      crypto::VerifyPeerCertificate(
          chain_pem, roots_pem_,
          {.federation = policy_.federation, .is_server = !host_.empty(), .now = now}));
  const MutexLock lock(mutex_);
  if (verified_.size() >= kMaxRemembered) {
    verified_.clear();
  }
  verified_.insert_or_assign(chain_pem, peer);
  return peer;
}

StatusOr<crypto::PeerIdentity> PeerVerifier::Admit(crypto::PeerIdentity peer) const {
  if (std::find(policy_.roles.begin(), policy_.roles.end(), peer.spiffe.role) ==
      policy_.roles.end()) {
    return Error(StatusCode::kUnauthenticated,
                 "`" + crypto::PrintSpiffe(peer.spiffe) + "` has no business here as `" +
                     std::string(crypto::RoleName(peer.spiffe.role)) + "`");
  }
  if (!policy_.rule) {
    return Error(StatusCode::kUnauthenticated, "there is no rule of whom to admit");
  }
  RETURN_IF_ERROR(policy_.rule(peer));
  return peer;
}

StatusOr<crypto::PeerIdentity> PeerVerifier::Verify(std::string_view leaf_pem,
                                                    std::string_view chain_pem) {
  if (leaf_pem.empty()) {
    return Refuse(Error(StatusCode::kUnauthenticated, "the peer shows no certificate"));
  }
  auto peer = Check(WholeChain(leaf_pem, chain_pem));
  if (peer.ok() && !host_.empty()) {
    if (const Status host = crypto::CheckHost(leaf_pem, host_); !host.ok()) {
      peer = host;
    }
  }
  if (peer.ok()) {
    peer = Admit(*std::move(peer));
  }
  if (!peer.ok()) {
    return Refuse(peer.status());
  }
  const MutexLock lock(mutex_);
  last_peer_ = *peer;
  last_refusal_ = OkStatus();
  return peer;
}

StatusOr<crypto::PeerIdentity> PeerVerifier::PeerOf(const grpc::ServerContextBase& context,
                                                    crypto::Role role) {
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) {
    return Refuse(Error(StatusCode::kUnauthenticated, "the caller is not authenticated"));
  }
  const std::string leaf = Property(*auth, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (leaf.empty()) {
    return Refuse(Error(StatusCode::kUnauthenticated, "the caller shows no certificate"));
  }
  auto peer = Check(WholeChain(leaf, Property(*auth, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME)));
  if (peer.ok()) {
    peer = Admit(*std::move(peer));
  }
  if (peer.ok() && peer->spiffe.role != role) {
    return Refuse(Error(StatusCode::kPermissionDenied,
                        "this call is for the role `" + std::string(crypto::RoleName(role)) +
                            "`, and `" + crypto::PrintSpiffe(peer->spiffe) + "` has another"));
  }
  return peer.ok() ? peer : Refuse(peer.status());
}

Status PeerVerifier::LastRefusal() const {
  const MutexLock lock(mutex_);
  return last_refusal_;
}

crypto::PeerIdentity PeerVerifier::LastPeer() const {
  const MutexLock lock(mutex_);
  return last_peer_;
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const TlsIdentity& identity, std::shared_ptr<PeerVerifier> verifier) {
  experimental::TlsServerCredentialsOptions options(Provider(identity));
  Fill(options, std::move(verifier));
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const TlsIdentity& identity, std::shared_ptr<PeerVerifier> verifier) {
  experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Provider(identity));
  Fill(options, std::move(verifier));
  options.set_verify_server_certs(true);
  // Our verifier has compared the host with the SANs, more strictly (no wildcards).
  options.set_check_call_host(false);
  return experimental::TlsCredentials(options);
}

}  // namespace domicile::wire
