#include "site_agent/cluster/internal/frames.h"

#include <poll.h>

namespace domicile::site_agent::internal {

FrameHead PrintHead(ClusterFrame kind, std::uint64_t bytes) {
  FrameHead head{};
  head[0] = static_cast<std::uint8_t>(kind);
  for (std::size_t i = 0; i < sizeof(bytes); ++i) {
    head[i + 1] = static_cast<std::uint8_t>(bytes >> (8 * i));
  }
  return head;
}

StatusOr<ParsedHead> ParseHead(const FrameHead& head) {
  if (head[0] == 0 || head[0] > static_cast<std::uint8_t>(ClusterFrame::kDone)) {
    return Error(StatusCode::kInvalidArgument, "a frame of no known kind");
  }
  ParsedHead parsed;
  parsed.kind = static_cast<ClusterFrame>(head[0]);
  for (std::size_t i = 0; i < sizeof(parsed.bytes); ++i) {
    parsed.bytes |= std::uint64_t{head[i + 1]} << (8 * i);
  }
  return parsed;
}

short EventOf(crypto::PskChannel::Wants wants) {
  switch (wants) {
    case crypto::PskChannel::Wants::kRead:
      return POLLIN;
    case crypto::PskChannel::Wants::kWrite:
      return POLLOUT;
    case crypto::PskChannel::Wants::kNothing:
      break;
  }
  return 0;
}

StatusOr<short> SendSome(crypto::PskChannel& channel, ByteSpan& rest) {
  while (!rest.empty()) {
    crypto::PskChannel::Wants wants{};
    ASSIGN_OR_RETURN(const std::size_t moved, channel.Write(rest, wants));
    if (moved == 0) {
      return EventOf(wants);
    }
    rest = rest.subspan(moved);
  }
  return short{0};
}

StatusOr<short> ReceiveSome(crypto::PskChannel& channel, std::span<std::uint8_t>& rest) {
  while (!rest.empty()) {
    crypto::PskChannel::Wants wants{};
    ASSIGN_OR_RETURN(const std::size_t moved, channel.Read(rest, wants));
    if (moved == 0) {
      return EventOf(wants);
    }
    rest = rest.subspan(moved);
  }
  return short{0};
}

}  // namespace domicile::site_agent::internal
