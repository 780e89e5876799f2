// Tests only: where workers of one machine can listen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/file.h"

namespace domicile::site_agent {

// Ports of loopback that were free a moment ago.
inline std::vector<std::uint16_t> FreePorts(std::size_t count) {
  std::vector<FileHandle> held;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    held.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(any);
    REQUIRE(bind(held.back().descriptor(), reinterpret_cast<sockaddr*>(&any), size) == 0);
    REQUIRE(getsockname(held.back().descriptor(), reinterpret_cast<sockaddr*>(&any), &size) == 0);
    ports.push_back(ntohs(any.sin_port));
  }
  return ports;
}

}  // namespace domicile::site_agent
