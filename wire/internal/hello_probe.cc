#include "wire/internal/hello_probe.h"

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <string>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/file.h"

namespace domicile::wire::internal {
namespace {

constexpr std::uint8_t kAlertRecord = 21;
constexpr std::uint8_t kHandshakeRecord = 22;
constexpr std::uint8_t kServerHello = 2;
constexpr std::size_t kRecordHeaderBytes = 5;

void AppendU16(Bytes& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8U));
  out.push_back(static_cast<std::uint8_t>(value));
}

void AppendBytes(Bytes& out, const Bytes& bytes) {
  for (const std::uint8_t byte : bytes) {
    out.push_back(byte);
  }
}

void AppendList(Bytes& out, std::initializer_list<unsigned> values) {
  AppendU16(out, values.size() * 2);
  for (const unsigned value : values) {
    AppendU16(out, value);
  }
}

// RFC 8446, section 4.2: type, length, contents.
void AppendExtension(Bytes& out, unsigned type, const Bytes& contents) {
  AppendU16(out, type);
  AppendU16(out, contents.size());
  AppendBytes(out, contents);
}

Bytes Lists(std::initializer_list<unsigned> values) {
  Bytes out;
  AppendList(out, values);
  return out;
}

Bytes Extensions(HelloVersion version) {
  Bytes out;
  AppendExtension(out, 10,
                  Lists({0x001d, 0x0017, 0x0018}));  // supported_groups: x25519, P-256, -384
  AppendExtension(out, 11, {1, 0});                  // ec_point_formats: uncompressed
  AppendExtension(out, 13,                           // signature_algorithms
                  Lists({0x0403, 0x0503, 0x0603, 0x0807, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501}));
  AppendExtension(out, 16, {0, 3, 2, 'h', '2'});  // ALPN
  if (version == HelloVersion::kTls12) {
    AppendExtension(out, 23, {});       // extended_master_secret
    AppendExtension(out, 0xff01, {0});  // renegotiation_info
    return out;
  }
  AppendExtension(out, 43, {2, 3, 4});  // supported_versions: 1.3
  Bytes share;
  AppendU16(share, 36);
  AppendU16(share, 0x001d);
  AppendU16(share, 32);
  // Nobody computes with it: the handshake ends after the answer. 9 is the base point of X25519, a
  // valid public key.
  share.push_back(9);
  AppendBytes(share, Bytes(31, 0));
  AppendExtension(out, 51, share);  // key_share
  return out;
}

Bytes Body(HelloVersion version) {
  Bytes out;
  AppendBytes(out, {3, 3});        // legacy_version
  AppendBytes(out, Bytes(32, 7));  // random: of no use to a handshake that is never finished
  AppendBytes(out, {32});
  AppendBytes(out, Bytes(32, 5));  // legacy_session_id
  if (version == HelloVersion::kTls12) {
    AppendList(out, {0xc02b, 0xc02c, 0xcca9, 0xc02f, 0xc030, 0xcca8, 0xc023, 0xc024, 0xc027, 0xc009,
                     0xc00a, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f, 0x0035});
  } else {
    AppendList(out, {0x1301, 0x1302, 0x1303});
  }
  AppendBytes(out, {1, 0});  // compression: none
  const Bytes extensions = Extensions(version);
  AppendU16(out, extensions.size());
  AppendBytes(out, extensions);
  return out;
}

Status Unreachable(const Address& address, std::string_view step, int error) {
  return Error(StatusCode::kUnavailable, std::string(step) + " " + PrintAddress(address) + ": " +
                                             std::string(Message(ErrnoError(error, "socket"))));
}

// Waits for the socket. Errors: kUnavailable if the time runs out.
Status Await(int descriptor, short events, std::chrono::milliseconds timeout,
             const Address& address) {
  pollfd wanted = {descriptor, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, static_cast<int>(timeout.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 1) {
    return OkStatus();
  }
  return Unreachable(address, "no answer from", ready == 0 ? ETIMEDOUT : errno);
}

StatusOr<FileHandle> Dial(const Address& address, std::chrono::milliseconds timeout) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list);
      error != 0) {
    return Error(StatusCode::kUnavailable,
                 "looking up `" + address.host + "`: " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  Status last = Error(StatusCode::kUnavailable, "`" + address.host + "` has no address");
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    FileHandle handle(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!handle.IsOpen()) {
      last = Unreachable(address, "opening a socket for", errno);
      continue;
    }
    if (::connect(handle.descriptor(), entry->ai_addr, entry->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) {
        last = Unreachable(address, "connecting to", errno);
        continue;
      }
      last = Await(handle.descriptor(), POLLOUT, timeout, address);
      int error = 0;
      socklen_t size = sizeof(error);
      if (last.ok() &&
          (::getsockopt(handle.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
           error != 0)) {
        last = Unreachable(address, "connecting to", error);
      }
      if (!last.ok()) {
        continue;
      }
    }
    return handle;
  }
  return last;
}

}  // namespace

Bytes MakeHello(HelloVersion version) {
  const Bytes body = Body(version);
  Bytes out;
  AppendBytes(out, {kHandshakeRecord, 3, 1});
  AppendU16(out, body.size() + 4);
  AppendBytes(out, {1, 0});  // ClientHello, and the high byte of its length
  AppendU16(out, body.size());
  AppendBytes(out, body);
  return out;
}

StatusOr<HelloAnswer> ReadAnswer(ByteSpan bytes) {
  if (bytes.empty()) {
    return HelloAnswer::kNone;
  }
  if (bytes.size() > kRecordHeaderBytes && bytes[1] == 3) {
    if (bytes[0] == kAlertRecord) {
      return HelloAnswer::kRefused;
    }
    if (bytes[0] == kHandshakeRecord && bytes[kRecordHeaderBytes] == kServerHello) {
      return HelloAnswer::kTaken;
    }
  }
  return Error(StatusCode::kInvalidArgument, "the answer to a TLS hello is not TLS");
}

StatusOr<HelloAnswer> TryHello(const Address& address, HelloVersion version,
                               std::chrono::milliseconds timeout) {
  ASSIGN_OR_RETURN(const FileHandle handle, Dial(address, timeout));
  const Bytes hello = MakeHello(version);
  // A new connection takes so few bytes at once; MSG_NOSIGNAL: a closed one is an answer.
  const ssize_t sent = ::send(handle.descriptor(), hello.data(), hello.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(hello.size())) {
    return Unreachable(address, "sending to", errno);
  }
  Bytes answer;
  while (answer.size() <= kRecordHeaderBytes) {
    RETURN_IF_ERROR(Await(handle.descriptor(), POLLIN, timeout, address));
    std::uint8_t buffer[64];
    const ssize_t size = ::recv(handle.descriptor(), buffer, sizeof(buffer), 0);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (size <= 0) {
      break;  // closed: what has come so far is the answer
    }
    answer.insert(answer.end(), buffer, buffer + size);
  }
  return ReadAnswer(answer);
}

}  // namespace domicile::wire::internal
