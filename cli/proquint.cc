#include "cli/proquint.h"

#include <string_view>

namespace domicile::cli {

namespace {

constexpr std::string_view kConsonants = "bdfghjklmnprstvz";
constexpr std::string_view kVowels = "aiou";
constexpr std::size_t kSpokenBytes = 16;

}  // namespace

std::string Proquints(ByteSpan bytes) {
  std::string text;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto word = static_cast<unsigned>(bytes[i] << 8U | bytes[i + 1]);
    text += i == 0 ? "" : "-";
    text += kConsonants[word >> 12U];
    text += kVowels[(word >> 10U) & 3U];
    text += kConsonants[(word >> 6U) & 15U];
    text += kVowels[(word >> 4U) & 3U];
    text += kConsonants[word & 15U];
  }
  return text;
}

std::string SpokenDigest(const Digest& digest) {
  return Proquints(ByteSpan(digest.bytes).first(kSpokenBytes));
}

}  // namespace domicile::cli
