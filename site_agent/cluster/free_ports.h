// Where workers of one machine can listen: for tests and benchmarks.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/status.h"

namespace domicile::site_agent {

// Ports of loopback that were free a moment ago. Errors: those of sockets.
inline StatusOr<std::vector<std::uint16_t>> FreePorts(std::size_t count) {
  std::vector<FileHandle> held;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    held.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(any);
    if (held.back().descriptor() < 0 ||
        bind(held.back().descriptor(), reinterpret_cast<sockaddr*>(&any), size) != 0 ||
        getsockname(held.back().descriptor(), reinterpret_cast<sockaddr*>(&any), &size) != 0) {
      return ErrnoError(errno, "taking a port of loopback");
    }
    ports.push_back(ntohs(any.sin_port));
  }
  return ports;
}

}  // namespace domicile::site_agent
