// What programs said and heard inside TLS, as tests/support/tls_tap.cc wrote it down; and the forms
// in which a string or a number might hide in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile::test {

// Programs that are started while it lives write their tapes to `folder`.
class TlsTap {
 public:
  explicit TlsTap(const std::string& folder);
  ~TlsTap();
  TlsTap(const TlsTap&) = delete;
  TlsTap& operator=(const TlsTap&) = delete;
};

// One connection of one program.
struct Tape {
  std::string program;  // and its process, `domicile-agent.4711`
  std::uint32_t connection = 0;
  std::string sent;
  std::string received;
};

// Errors: kDataLoss (a tape that ends in the middle of a record).
StatusOr<std::vector<Tape>> ReadTapes(const std::string& folder);

// The messages in one direction of HTTP/2: of each stream the contents of its DATA frames, one
// after the other, so that a frame's end hides nothing; a NUL between streams. Errors: kDataLoss.
StatusOr<std::string> MessagesOf(std::string_view http2);

// A text as it is, in base64 at each of three places, in hexadecimal of either case, and in UTF-16.
// Each form is long enough not to appear by chance.
std::vector<std::string> FormsOfText(std::string_view text);
// A number as this text, and as float32 and float64 in either order of bytes.
std::vector<std::string> FormsOfNumber(std::string_view text);

}  // namespace domicile::test
