#include "wire/address.h"

#include <algorithm>

#include "base/text.h"

namespace domicile::wire {
namespace {

Status Bad(std::string_view text) {
  return Error(StatusCode::kInvalidArgument,
               "address `" + Visible(text) +
                   "` is not HOST:PORT, for instance `aggregator.example:7443` or `[::1]:7443`");
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == ':';
}

}  // namespace

StatusOr<Address> ParseAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return Bad(text);
  }
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  const bool has_colon = host.find(':') != std::string_view::npos;
  if (has_colon != bracketed || !std::all_of(host.begin(), host.end(), IsHostCharacter)) {
    return Bad(text);
  }
  const auto port = ParseUint64(text.substr(colon + 1));
  if (!port.ok() || *port > UINT16_MAX) {
    return Bad(text);
  }
  return Address{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string PrintAddress(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace domicile::wire
