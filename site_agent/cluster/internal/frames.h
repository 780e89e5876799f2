// Frames of the cluster link (docs/formats/cluster.md), and their way over a channel that does not
// block.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "crypto/psk_channel.h"
#include "site_agent/cluster/group.h"

namespace domicile::site_agent::internal {

struct ParsedHead {
  ClusterFrame kind = ClusterFrame::kNone;
  std::uint64_t bytes = 0;
};

FrameHead PrintHead(ClusterFrame kind, std::uint64_t bytes);
// Errors: kInvalidArgument (no such kind).
StatusOr<ParsedHead> ParseHead(const FrameHead& head);

// How often a wait for a worker looks whether it was cancelled.
inline constexpr int kLookMilliseconds = 200;

// What poll is to wait for; 0 for nothing.
short EventOf(crypto::PskChannel::Wants wants);
// Move bytes as far as goes without waiting; `rest` is what is left of them. Return what poll is to
// wait for, 0 where nothing is left. Errors: those of the channel.
StatusOr<short> SendSome(crypto::PskChannel& channel, ByteSpan& rest);
StatusOr<short> ReceiveSome(crypto::PskChannel& channel, std::span<std::uint8_t>& rest);

}  // namespace domicile::site_agent::internal
