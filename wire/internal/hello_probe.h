// One half of a TLS handshake, by hand: a hello, and what kind of answer it gets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/address.h"

namespace domicile::wire::internal {

enum class HelloVersion : std::uint8_t { kTls12 = 1, kTls13 = 2 };

// The record of a ClientHello that offers the version and nothing else, with the suites, groups and
// signatures every server has.
Bytes MakeHello(HelloVersion version);

enum class HelloAnswer : std::uint8_t {
  kNone = 0,     // closed without a word, as gRPC does when it refuses
  kRefused = 1,  // an alert
  kTaken = 2,    // a ServerHello
};

// What the first record of an answer is. Errors: kInvalidArgument if it is not TLS.
StatusOr<HelloAnswer> ReadAnswer(ByteSpan bytes);

// Connects, sends the hello, reads the start of the answer. Errors: kUnavailable, naming the step.
StatusOr<HelloAnswer> TryHello(const Address& address, HelloVersion version,
                               std::chrono::milliseconds timeout);

}  // namespace domicile::wire::internal
