// Ed25519 (RFC 8032) over raw keys.
#pragma once

#include <array>

#include "base/bytes.h"

namespace domicile::crypto::internal {

inline constexpr std::size_t kEd25519SeedBytes = 32;
inline constexpr std::size_t kEd25519SignatureBytes = 64;

using Ed25519Key = std::array<std::uint8_t, 32>;
using Ed25519Signature = std::array<std::uint8_t, kEd25519SignatureBytes>;

// `seed` has 32 bytes in both.
Ed25519Key Ed25519PublicKey(ByteSpan seed);
Ed25519Signature Ed25519Sign(ByteSpan seed, ByteSpan message);

// False for a signature of another length, a key that is no point, or a signature that does not
// verify.
bool Ed25519Verifies(const Ed25519Key& key, ByteSpan message, ByteSpan signature);

}  // namespace domicile::crypto::internal
