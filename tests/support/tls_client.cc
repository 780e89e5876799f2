#include "tests/support/tls_client.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/file.h"
#include "crypto/internal/x509.h"

namespace domicile::test {
namespace {

namespace internal = crypto::internal;

using SslContext = std::unique_ptr<SSL_CTX, internal::Deleter<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, internal::Deleter<SSL_free>>;

StatusOr<FileHandle> Dial(int port) {
  FileHandle handle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic = {};
  static_assert(sizeof(generic) == sizeof(address));
  std::memcpy(&generic, &address, sizeof(address));
  const timeval patience = {5, 0};  // a server that says nothing is a failure, not a hang
  ::setsockopt(handle.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (::connect(handle.descriptor(), &generic, sizeof(generic)) != 0) {
    return ErrnoError(errno, "connecting");
  }
  return handle;
}

StatusOr<SslContext> MakeContext(TlsVersion version, const TestParty& party) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  DOMICILE_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), static_cast<int>(version));
  SSL_CTX_set_max_proto_version(context.get(), static_cast<int>(version));
  ASSIGN_OR_RETURN(const auto chain, internal::ParseCertificates(party.chain_pem, "chain"));
  ASSIGN_OR_RETURN(const auto key, internal::ParsePrivateKey(party.key_pem, "key"));
  SSL_CTX_use_certificate(context.get(), chain.front().get());
  for (std::size_t i = 1; i < chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(context.get(), chain[i].get());
  }
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  const unsigned char protocols[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), protocols, sizeof(protocols));
  return context;
}

}  // namespace

StatusOr<std::string> TlsConnect(int port, TlsVersion version, const TestParty& party) {
  ASSIGN_OR_RETURN(const FileHandle handle, Dial(port));
  ASSIGN_OR_RETURN(const SslContext context, MakeContext(version, party));
  const Ssl ssl(SSL_new(context.get()));
  DOMICILE_CHECK(ssl != nullptr);
  SSL_set_fd(ssl.get(), handle.descriptor());
  if (SSL_connect(ssl.get()) != 1) {
    return Error(StatusCode::kUnauthenticated, "the handshake failed");
  }
  char first = 0;
  if (SSL_read(ssl.get(), &first, 1) != 1) {
    return Error(StatusCode::kUnauthenticated, "the server closed after the handshake");
  }
  return std::string(SSL_get_version(ssl.get()));
}

}  // namespace domicile::test
