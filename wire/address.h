// HOST:PORT as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace domicile::wire {

struct Address {
  std::string host;  // a DNS name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;
};

// `aggregator.example:7443`, `127.0.0.1:0`, `[::1]:7443`. Errors: kInvalidArgument.
StatusOr<Address> ParseAddress(std::string_view text);
std::string PrintAddress(const Address& address);

// Whether the host is this machine by its spelling: `localhost`, 127.x.x.x, ::1.
bool IsLoopback(std::string_view host);

}  // namespace domicile::wire
