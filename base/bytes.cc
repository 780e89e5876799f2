#include "base/bytes.h"

#include <algorithm>

namespace domicile {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string PrintHex(ByteSpan bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += kHex[byte >> 4U];
    text += kHex[byte & 15U];
  }
  return text;
}

StatusOr<Bytes> ParseHex(std::string_view text) {
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::size_t high = kHex.find(text[i]);
    const std::size_t low = kHex.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return Error(StatusCode::kInvalidArgument, "not lower-case hexadecimal");
    }
    bytes.push_back(static_cast<std::uint8_t>(high << 4U | low));
  }
  if (text.size() % 2 != 0) {
    return Error(StatusCode::kInvalidArgument, "an odd number of hexadecimal digits");
  }
  return bytes;
}

std::string PrintBase64(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    const std::uint32_t group = static_cast<std::uint32_t>(bytes[i]) << 16U |
                                (n > 1 ? static_cast<std::uint32_t>(bytes[i + 1]) << 8U : 0U) |
                                (n > 2 ? static_cast<std::uint32_t>(bytes[i + 2]) : 0U);
    text += kBase64[group >> 18U];
    text += kBase64[group >> 12U & 63U];
    text += n > 1 ? kBase64[group >> 6U & 63U] : '=';
    text += n > 2 ? kBase64[group & 63U] : '=';
  }
  return text;
}

StatusOr<Bytes> ParseBase64(std::string_view text) {
  const Status bad = Error(StatusCode::kInvalidArgument, "not base64");
  if (text.size() % 4 != 0) {
    return bad;
  }
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = last ? (text[i + 3] != '='   ? 0U
                                        : text[i + 2] != '=' ? 1U
                                                             : 2U)
                                     : 0U;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t value = k + padding >= 4 ? 0 : kBase64.find(text[i + k]);
      if (value == std::string_view::npos) {
        return bad;
      }
      group = group << 6U | static_cast<std::uint32_t>(value);
    }
    // Bits behind the last byte must be zero, or two texts would mean the same bytes.
    if ((padding == 1 && (group & 0xFFU) != 0) || (padding == 2 && (group & 0xFFFFU) != 0)) {
      return bad;
    }
    for (std::size_t k = 0; k < 3 - padding; ++k) {
      bytes.push_back(static_cast<std::uint8_t>(group >> (16U - 8U * k)));
    }
  }
  return bytes;
}

std::string PrintHex(const Digest& digest) { return PrintHex(ByteSpan(digest.bytes)); }

StatusOr<Digest> ParseDigest(std::string_view hex) {
  ASSIGN_OR_RETURN(const Bytes bytes, ParseHex(hex));
  return DigestFromBytes(bytes);
}

StatusOr<Digest> DigestFromBytes(ByteSpan bytes) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) {
    return Error(StatusCode::kInvalidArgument, "a digest has 32 bytes");
  }
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

void AppendU32(Bytes& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

void AppendU64(Bytes& out, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

std::uint32_t ReadU32(ByteSpan at) {
  DOMICILE_CHECK(at.size() >= 4);
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(at[i]) << (8U * i);
  }
  return value;
}

std::uint64_t ReadU64(ByteSpan at) {
  DOMICILE_CHECK(at.size() >= 8);
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) {
    value |= static_cast<std::uint64_t>(at[i]) << (8U * i);
  }
  return value;
}

}  // namespace domicile
