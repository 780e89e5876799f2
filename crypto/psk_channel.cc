#include "crypto/psk_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "crypto/internal/openssl.h"

namespace domicile::crypto {

namespace {

constexpr std::array<unsigned char, 2> kSuite = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr const char* kSuiteName = "TLS_AES_128_GCM_SHA256";

using Context = std::unique_ptr<SSL_CTX, internal::Deleter<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL_SESSION, internal::Deleter<SSL_SESSION_free>>;
using Connection = std::unique_ptr<SSL, internal::Deleter<SSL_free>>;
using Transport = std::unique_ptr<BIO_METHOD, internal::Deleter<BIO_meth_free>>;

int SocketOf(BIO* bio) { return static_cast<const FileHandle*>(BIO_get_data(bio))->descriptor(); }

int Moved(BIO* bio, ssize_t moved, int retry) {
  BIO_clear_retry_flags(bio);
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  }
  return static_cast<int>(moved);
}

// OpenSSL's own socket transport writes without MSG_NOSIGNAL: a peer that is gone would end the
// process.
const BIO_METHOD* SocketTransport() {
  static const Transport transport_method = [] {
    Transport transport(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
    BIO_meth_set_write(transport.get(), [](BIO* bio, const char* bytes, int size) {
      return Moved(bio, send(SocketOf(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL),
                   BIO_FLAGS_WRITE);
    });
    BIO_meth_set_read(transport.get(), [](BIO* bio, char* bytes, int size) {
      return Moved(bio, recv(SocketOf(bio), bytes, static_cast<std::size_t>(size), 0),
                   BIO_FLAGS_READ);
    });
    BIO_meth_set_ctrl(transport.get(),
                      [](BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) -> long {
                        return command == BIO_CTRL_FLUSH ? 1 : 0;
                      });
    return transport;
  }();
  return transport_method.get();
}

}  // namespace

struct PskChannel::State {
  FileHandle socket;
  SecretBytes key;
  std::string purpose;
  Connection tls;  // before the socket in destruction: it only borrows it

  static const State& Of(SSL* tls) { return *static_cast<const State*>(SSL_get_ex_data(tls, 0)); }

  Session MakeSession(SSL* connection) const {
    Session session(SSL_SESSION_new());
    const SSL_CIPHER* const suite = SSL_CIPHER_find(connection, kSuite.data());
    const ByteSpan secret = key.Span();
    const bool made =
        session != nullptr && suite != nullptr &&
        SSL_SESSION_set1_master_key(session.get(), secret.data(), secret.size()) == 1 &&
        SSL_SESSION_set_cipher(session.get(), suite) == 1 &&
        SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
    return made ? std::move(session) : Session();
  }

  static int Use(SSL* tls, const EVP_MD* /*digest*/, const unsigned char** identity,
                 std::size_t* length, SSL_SESSION** session) {
    const State& state = Of(tls);
    *identity = reinterpret_cast<const unsigned char*>(state.purpose.data());
    *length = state.purpose.size();
    *session = state.MakeSession(tls).release();
    return *session != nullptr ? 1 : 0;
  }

  static int Find(SSL* tls, const unsigned char* identity, std::size_t length,
                  SSL_SESSION** session) {
    const State& state = Of(tls);
    *session = nullptr;  // not ours: OpenSSL goes on without a key, and fails for want of one
    if (std::string_view(reinterpret_cast<const char*>(identity), length) == state.purpose) {
      *session = state.MakeSession(tls).release();
      return *session != nullptr ? 1 : 0;
    }
    return 1;
  }
};

namespace {

// Both sides without certificates: without the key there is nothing to agree on.
StatusOr<Context> MakeContext() {
  Context context(SSL_CTX_new(TLS_method()));
  const bool made = context != nullptr &&
                    SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(context.get(), kSuiteName) == 1 &&
                    SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  if (!made) {
    return Error(StatusCode::kInternal, "the TLS library cannot make a context");
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

// What a failed call waits for, or its error.
StatusOr<PskChannel::Wants> WantsOf(SSL* tls, int result, bool open) {
  const int error = SSL_get_error(tls, result);
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_WANT_READ:
      return PskChannel::Wants::kRead;
    case SSL_ERROR_WANT_WRITE:
      return PskChannel::Wants::kWrite;
    case SSL_ERROR_SSL:
      if (!open) {
        return Error(StatusCode::kUnauthenticated, "the other side does not hold the same key");
      }
      return Error(StatusCode::kUnavailable, "the other side broke the encrypted connection");
    default:
      return Error(StatusCode::kUnavailable, "the other side closed the connection");
  }
}

int Capped(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

}  // namespace

PskChannel::PskChannel(std::unique_ptr<State> state) : state_(std::move(state)) {}
PskChannel::PskChannel(PskChannel&&) noexcept = default;
PskChannel& PskChannel::operator=(PskChannel&&) noexcept = default;
PskChannel::~PskChannel() = default;

int PskChannel::descriptor() const { return state_->socket.descriptor(); }

StatusOr<PskChannel> PskChannel::Make(FileHandle socket, PskSide side, ByteSpan key,
                                      std::string_view purpose) {
  if (key.size() != kPskBytes || purpose.empty() || purpose.size() > 64) {
    return Error(StatusCode::kInvalidArgument, "a shared key must have 32 bytes, and a purpose");
  }
  auto state = std::make_unique<State>();
  state->socket = std::move(socket);
  state->key = SecretBytes(key);
  state->purpose = std::string(purpose);
  ASSIGN_OR_RETURN(const Context context, MakeContext());
  SSL_CTX_set_psk_use_session_callback(context.get(), &State::Use);
  SSL_CTX_set_psk_find_session_callback(context.get(), &State::Find);
  state->tls.reset(SSL_new(context.get()));
  BIO* const transport = BIO_new(SocketTransport());
  if (state->tls == nullptr || transport == nullptr ||
      SSL_set_ex_data(state->tls.get(), 0, state.get()) != 1) {
    BIO_free(transport);
    return Error(StatusCode::kInternal, "the TLS library cannot make a connection");
  }
  BIO_set_data(transport, &state->socket);
  BIO_set_init(transport, 1);
  SSL_set_bio(state->tls.get(), transport, transport);
  if (side == PskSide::kConnecting) {
    // A server that answers with a certificate instead of the key is refused: nobody vouches for
    // it.
    SSL_set_verify(state->tls.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(state->tls.get());
  } else {
    SSL_set_accept_state(state->tls.get());
  }
  return PskChannel(std::move(state));
}

StatusOr<PskChannel::Wants> PskChannel::Handshake() {
  SSL* const tls = state_->tls.get();
  const int result = SSL_do_handshake(tls);
  if (result != 1) {
    return WantsOf(tls, result, false);
  }
  // A handshake by any other means than the key would show here.
  if (SSL_session_reused(tls) != 1) {
    return Error(StatusCode::kUnauthenticated, "the other side does not hold the same key");
  }
  return Wants::kNothing;
}

StatusOr<std::size_t> PskChannel::Write(ByteSpan bytes, Wants& wants) {
  wants = Wants::kNothing;
  const int result = SSL_write(state_->tls.get(), bytes.data(), Capped(bytes.size()));
  if (result > 0) {
    return static_cast<std::size_t>(result);
  }
  ASSIGN_OR_RETURN(wants, WantsOf(state_->tls.get(), result, true));
  return std::size_t{0};
}

StatusOr<std::size_t> PskChannel::Read(std::span<std::uint8_t> bytes, Wants& wants) {
  wants = Wants::kNothing;
  const int result = SSL_read(state_->tls.get(), bytes.data(), Capped(bytes.size()));
  if (result > 0) {
    return static_cast<std::size_t>(result);
  }
  ASSIGN_OR_RETURN(wants, WantsOf(state_->tls.get(), result, true));
  return std::size_t{0};
}

}  // namespace domicile::crypto
