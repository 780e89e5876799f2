// Bytes as words that can be read out over a telephone: proquints (arXiv:0901.4016). Each two bytes
// are one word of five letters, no list needed: `lusab-babad`.
#pragma once

#include <string>

#include "base/bytes.h"

namespace domicile::cli {

// `bytes` of even length.
std::string Proquints(ByteSpan bytes);

// The first 16 bytes of a digest: eight words. Enough that nobody finds another document with the
// same words.
std::string SpokenDigest(const Digest& digest);

}  // namespace domicile::cli
