#include "site_agent/cluster/sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace domicile::site_agent {

namespace {

constexpr int kRetryMilliseconds = 250;
// What a host that went down without a word may leave unacknowledged.
constexpr int kUnacknowledgedMilliseconds = 10'000;

Status Unusable(std::string_view what, int error) {
  return Error(StatusCode::kFailedPrecondition,
               std::string(Message(ErrnoError(error, "using " + std::string(what)))));
}

StatusOr<sockaddr_storage> Resolve(const WorkerAddress& address) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (error != 0 || found == nullptr) {
    return Error(StatusCode::kInvalidArgument, "worker `" + address.Text() +
                                                   "`: the name cannot be resolved (" +
                                                   gai_strerror(error) + ")");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  sockaddr_storage storage{};
  std::memcpy(&storage, found->ai_addr, found->ai_addrlen);
  return storage;
}

socklen_t LengthOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

bool SameHost(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) {
    return false;
  }
  if (a.ss_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                       &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
  }
  return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
}

void Tune(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMilliseconds,
             sizeof(kUnacknowledgedMilliseconds));
}

// A socket that can use this interface and no other.
StatusOr<FileHandle> SocketOn(const std::string& interface, int family) {
  FileHandle handle(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!handle.IsOpen()) {
    return ErrnoError(errno, "a cluster socket");
  }
  if (setsockopt(handle.descriptor(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                 static_cast<socklen_t>(interface.size())) != 0) {
    return Unusable(
        "the interface `" + interface + "` (`interface` must name one that `ip link` shows)",
        errno);
  }
  return handle;
}

StatusOr<FileHandle> Listen(const ClusterDescription& description, const sockaddr_storage& own) {
  ASSIGN_OR_RETURN(FileHandle listener, SocketOn(description.interface, own.ss_family));
  const int on = 1;
  setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&own), LengthOf(own)) != 0 ||
      listen(listener.descriptor(), static_cast<int>(kMaxWorkers)) != 0) {
    return Unusable("`" + description.workers[description.rank].Text() + "`, the address of rank " +
                        std::to_string(description.rank),
                    errno);
  }
  return listener;
}

// One attempt; an empty handle if nobody listens there yet.
StatusOr<FileHandle> TryConnect(const std::string& interface, const sockaddr_storage& to) {
  ASSIGN_OR_RETURN(FileHandle handle, SocketOn(interface, to.ss_family));
  const int socket = handle.descriptor();
  int error =
      connect(socket, reinterpret_cast<const sockaddr*>(&to), LengthOf(to)) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait = {socket, POLLOUT, 0};
    socklen_t size = sizeof(error);
    if (poll(&wait, 1, 4 * kRetryMilliseconds) != 1 ||
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      return FileHandle();
    }
  }
  if (error != 0) {
    return FileHandle();
  }
  Tune(socket);
  return handle;
}

StatusOr<FileHandle> ConnectTo(const ClusterDescription& description, std::size_t rank,
                               const sockaddr_storage& to, const Clock& clock) {
  const MonotonicTime deadline = clock.Monotonic() + description.rendezvous;
  while (true) {
    ASSIGN_OR_RETURN(FileHandle handle, TryConnect(description.interface, to));
    if (handle.IsOpen()) {
      return handle;
    }
    if (clock.Monotonic() >= deadline) {
      return Error(StatusCode::kUnavailable, "worker " + std::to_string(rank) +
                                                 " does not listen on `" +
                                                 description.workers[rank].Text() +
                                                 "`: start its trainer, and check that "
                                                 "`" +
                                                 description.interface + "` leads there");
    }
    poll(nullptr, 0, kRetryMilliseconds);
  }
}

}  // namespace

StatusOr<ClusterSockets> OpenClusterSockets(const ClusterDescription& description,
                                            const Clock& clock) {
  ClusterSockets sockets;
  for (const WorkerAddress& worker : description.workers) {
    ASSIGN_OR_RETURN(const sockaddr_storage host, Resolve(worker));
    sockets.hosts.push_back(host);
  }
  if (description.rank + 1 < description.workers.size()) {
    ASSIGN_OR_RETURN(sockets.listener, Listen(description, sockets.hosts[description.rank]));
  }
  for (std::size_t rank = 0; rank < description.rank; ++rank) {
    ASSIGN_OR_RETURN(FileHandle lower, ConnectTo(description, rank, sockets.hosts[rank], clock));
    sockets.lower.push_back(std::move(lower));
  }
  return sockets;
}

StatusOr<FileHandle> AcceptWorker(const ClusterSockets& sockets, std::size_t first_rank,
                                  int timeout_ms) {
  pollfd wait = {sockets.listener.descriptor(), POLLIN, 0};
  if (poll(&wait, 1, timeout_ms) < 1) {
    return FileHandle();
  }
  sockaddr_storage from{};
  socklen_t size = sizeof(from);
  FileHandle accepted(accept4(sockets.listener.descriptor(), reinterpret_cast<sockaddr*>(&from),
                              &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.IsOpen()) {
    // A peer that went again while it waited is no error of the listener.
    return errno == EMFILE || errno == ENFILE ? StatusOr<FileHandle>(ErrnoError(errno, "accepting"))
                                              : StatusOr<FileHandle>(FileHandle());
  }
  const bool listed = std::any_of(
      sockets.hosts.begin() + static_cast<std::ptrdiff_t>(first_rank), sockets.hosts.end(),
      [&from](const sockaddr_storage& host) { return SameHost(host, from); });
  if (!listed) {
    return FileHandle();
  }
  Tune(accepted.descriptor());
  return accepted;
}

}  // namespace domicile::site_agent
