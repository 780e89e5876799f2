// Byte strings: hexadecimal, base64, little-endian numbers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile {

using Bytes = std::vector<std::uint8_t>;
using ByteSpan = std::span<const std::uint8_t>;

// Views of the same memory.
inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes ToBytes(std::string_view text) { return {text.begin(), text.end()}; }

// Lower-case hexadecimal. Parse takes lower case only, an even number of digits: one spelling each.
std::string PrintHex(ByteSpan bytes);
StatusOr<Bytes> ParseHex(std::string_view text);

// RFC 4648 base64, standard alphabet, with padding. Parse refuses non-zero trailing bits: one
// spelling each.
std::string PrintBase64(ByteSpan bytes);
StatusOr<Bytes> ParseBase64(std::string_view text);

// A SHA-256 digest; zero means "none" and never matches a real one.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  bool IsZero() const { return *this == Digest{}; }
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};
std::string PrintHex(const Digest& digest);
// 64 lower-case hexadecimal digits. Errors: kInvalidArgument.
StatusOr<Digest> ParseDigest(std::string_view hex);
// 32 raw bytes. Errors: kInvalidArgument.
StatusOr<Digest> DigestFromBytes(ByteSpan bytes);

// Little-endian numbers at the end of a buffer, and from the front of a span (which must hold
// them).
void AppendU32(Bytes& out, std::uint32_t value);
void AppendU64(Bytes& out, std::uint64_t value);
std::uint32_t ReadU32(ByteSpan at);
std::uint64_t ReadU64(ByteSpan at);

}  // namespace domicile
