#include "crypto/internal/utf8.h"

#include <cstdint>

namespace domicile::crypto::internal {

bool IsUtf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::size_t i = 0;
  while (i < text.size()) {
    const std::uint8_t lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead < 0xC2 || lead > 0xF4) {
      return false;  // a continuation byte, an overlong form, or beyond U+10FFFF
    }
    const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (text.size() - i < length) {
      return false;
    }
    // The second byte is where overlong forms, surrogates and the upper end are told apart.
    const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i + 1) < low || byte(i + 1) > high) {
      return false;
    }
    for (std::size_t k = 2; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80) {
        return false;
      }
    }
    i += length;
  }
  return true;
}

}  // namespace domicile::crypto::internal
