// What has gone over a control stream: for the log, which holds control messages in sums.
#pragma once

#include <cstdint>

namespace domicile::wire {

// Serialised messages, without framing. Out: handed to the stream by its owner, which sends it
// unless the connection breaks first. In: arrived. So what has arrived at one end is never more
// than what went out at the other.
struct ControlTally {
  std::uint64_t messages_in = 0;
  std::uint64_t messages_out = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;

  void AddIn(std::uint64_t bytes) {
    ++messages_in;
    bytes_in += bytes;
  }
  void AddOut(std::uint64_t bytes) {
    ++messages_out;
    bytes_out += bytes;
  }
  // What was added since an earlier tally of the same stream.
  ControlTally Since(const ControlTally& earlier) const {
    return {.messages_in = messages_in - earlier.messages_in,
            .messages_out = messages_out - earlier.messages_out,
            .bytes_in = bytes_in - earlier.bytes_in,
            .bytes_out = bytes_out - earlier.bytes_out};
  }
  friend bool operator==(const ControlTally&, const ControlTally&) = default;
};

}  // namespace domicile::wire
