// The sizes and times of the transport, the same words at both ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace domicile::wire {

// The one version of the protocol that these programs speak (docs/formats/wire.md).
inline constexpr std::uint32_t kProtocolVersion = 1;

// Data of one chunk of a blob, at most; also the leaf size of the digest tree.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;

struct TransportSettings {
  // Flow-control window of one stream. Bounds what a receiver holds unread. One stream carries at
  // most window / round-trip time: 4 MiB at 100 ms are 42 MB/s.
  std::int32_t window_bytes = 4 << 20;
  // Pings keep middleboxes from forgetting an idle connection; they forget after 60 s and more.
  std::chrono::milliseconds keepalive{45'000};
  std::chrono::milliseconds keepalive_timeout{20'000};
  // One attempt to connect, TLS and all. A far or busy aggregator takes seconds.
  std::chrono::milliseconds connect_timeout{20'000};
  // Waits between attempts to connect, growing from the first to the second.
  std::chrono::milliseconds reconnect_first{500};
  std::chrono::milliseconds reconnect_most{30'000};
  // A message that is no chunk: a roster, a plan, policies.
  std::int32_t max_message_bytes = 8 << 20;
};

}  // namespace domicile::wire
