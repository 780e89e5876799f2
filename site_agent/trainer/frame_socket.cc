#include "site_agent/trainer/frame_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace domicile::site_agent {

namespace {

constexpr std::size_t kReadBlock = std::size_t{1} << 20U;

Status Gone(std::string_view what) {
  return Error(StatusCode::kUnavailable, "trainer socket: " + std::string(what));
}

StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error(StatusCode::kInvalidArgument, "socket `" + path + "`: a path of 1 to " +
                                                   std::to_string(sizeof address.sun_path - 1) +
                                                   " bytes is needed");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

StatusOr<FileHandle> NewSocket(const std::string& path) {
  FileHandle made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.IsOpen()) {
    return ErrnoError(errno, "making socket `" + path + "`");
  }
  return made;
}

// Removes what a trainer that is gone left behind.
Status ClearPath(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? OkStatus() : ErrnoError(errno, "reading `" + path + "`");
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + path + "` is no socket; choose another `socket` or move the file away");
  }
  if (ConnectUnix(path).ok()) {
    return Error(StatusCode::kFailedPrecondition,
                 "another trainer serves at `" + path + "`; stop it first");
  }
  return RemoveFile(path);
}

}  // namespace

StatusOr<WakeSignal> WakeSignal::Make() {
  FileHandle event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.IsOpen()) {
    return ErrnoError(errno, "making an event descriptor");
  }
  return WakeSignal(std::move(event));
}

void WakeSignal::Raise() const {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable.
  [[maybe_unused]] const ssize_t written = write(event_.descriptor(), &one, sizeof one);
}

StatusOr<Waited> FrameSocket::Wait(std::chrono::milliseconds timeout, int wake, int second) const {
  std::array<pollfd, 3> waits = {
      {{socket_.descriptor(), POLLIN, 0}, {wake, POLLIN, 0}, {second, POLLIN, 0}}};
  const int limit = static_cast<int>(std::min<std::int64_t>(timeout.count(), INT32_MAX));
  int ready = poll(waits.data(), waits.size(), limit);
  while (ready < 0 && errno == EINTR) {
    ready = poll(waits.data(), waits.size(), limit);
  }
  if (ready < 0) {
    return ErrnoError(errno, "trainer socket: waiting");
  }
  if (waits[1].revents != 0) {
    return Waited::kWoken;
  }
  if (waits[2].revents != 0) {
    return Waited::kWokenSecond;
  }
  return waits[0].revents != 0 ? Waited::kReadable : Waited::kTimeout;
}

Status FrameSocket::WaitFor(short events) const {
  std::array<pollfd, 2> waits = {{{socket_.descriptor(), events, 0}, {wake_, POLLIN, 0}}};
  int ready = poll(waits.data(), waits.size(), static_cast<int>(stall_timeout_.count()));
  while (ready < 0 && errno == EINTR) {
    ready = poll(waits.data(), waits.size(), static_cast<int>(stall_timeout_.count()));
  }
  if (ready < 0) {
    return ErrnoError(errno, "trainer socket: waiting");
  }
  if (waits[1].revents != 0) {
    return Error(StatusCode::kCancelled, "trainer socket: stopped");
  }
  return ready == 0 ? Gone("the other side stalls") : OkStatus();
}

Status FrameSocket::Send(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(WaitFor(POLLOUT));
    } else if (errno != EINTR) {
      return Gone("the other side closed the connection");
    }
  }
  return OkStatus();
}

StatusOr<std::size_t> FrameSocket::ReadSome(std::uint8_t* to, std::size_t size) {
  while (true) {
    const ssize_t got = recv(socket_.descriptor(), to, size, MSG_DONTWAIT);
    if (got > 0) {
      return static_cast<std::size_t>(got);
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      RETURN_IF_ERROR(WaitFor(POLLIN));
    } else if (got == 0 || errno != EINTR) {
      return Gone("the other side closed the connection");
    }
  }
}

Status FrameSocket::ReadExactly(std::uint8_t* to, std::size_t size) {
  while (size > 0) {
    ASSIGN_OR_RETURN(const std::size_t got, ReadSome(to, size));
    to += got;
    size -= got;
  }
  return OkStatus();
}

StatusOr<FrameHeader> FrameSocket::ReadHeader(std::uint64_t max_payload) {
  std::array<std::uint8_t, kFrameHeaderBytes> bytes{};
  RETURN_IF_ERROR(ReadExactly(bytes.data(), bytes.size()));
  return ParseFrameHeader(bytes, max_payload);
}

StatusOr<std::string> FrameSocket::ReadText(std::uint32_t bytes) {
  std::string text(bytes, '\0');
  RETURN_IF_ERROR(ReadExactly(reinterpret_cast<std::uint8_t*>(text.data()), text.size()));
  return text;
}

StatusOr<Bytes> FrameSocket::ReadPayload(std::uint64_t bytes) {
  Bytes payload;
  // Addresses for all of it, which costs nothing until a page is touched: growing would copy.
  payload.reserve(bytes);
  while (payload.size() < bytes) {
    const std::size_t have = payload.size();
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - have, kReadBlock));
    payload.resize(have + step);
    RETURN_IF_ERROR(ReadExactly(payload.data() + have, step));
  }
  return payload;
}

Status FrameSocket::SkipPayload(std::uint64_t bytes) {
  Bytes block(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kReadBlock)));
  while (bytes > 0) {
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, block.size()));
    ASSIGN_OR_RETURN(const std::size_t got, ReadSome(block.data(), step));
    bytes -= got;
  }
  return OkStatus();
}

StatusOr<FileHandle> ListenUnix(const std::string& path, unsigned mode) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  RETURN_IF_ERROR(ClearPath(path));
  ASSIGN_OR_RETURN(FileHandle made, NewSocket(path));
  // The mask, so that there is no instant in which others can connect. Before any thread exists.
  const mode_t before = umask(0777U & ~mode);
  const int bound =
      bind(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  umask(before);
  if (bound != 0) {
    return ErrnoError(error, "listening at `" + path + "`");
  }
  if (listen(made.descriptor(), 8) != 0) {
    return ErrnoError(errno, "listening at `" + path + "`");
  }
  return made;
}

StatusOr<FileHandle> ConnectUnix(const std::string& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  ASSIGN_OR_RETURN(FileHandle made, NewSocket(path));
  if (connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    if (errno == EACCES || errno == EPERM) {
      return ErrnoError(errno, "connecting to the trainer at `" + path + "`");
    }
    return Error(StatusCode::kUnavailable,
                 "no trainer serves at `" + path + "`; start `domicile-trainer` first");
  }
  return made;
}

}  // namespace domicile::site_agent
