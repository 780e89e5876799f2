// A training checkpoint that somebody has changed. The digest is put right first, or nothing beyond
// it would be reached; what is then read is printed and read again as the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "crypto/sha256.h"
#include "models/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using domicile::Digest;
  using domicile::models::ParseCheckpoint;
  domicile::Bytes file(data, data + size);
  DOMICILE_CHECK(size >= 32 || !ParseCheckpoint(file, Digest{}).ok());
  if (size >= 32) {
    const Digest digest = domicile::crypto::Sha256(domicile::ByteSpan(file).first(size - 32));
    std::copy(digest.bytes.begin(), digest.bytes.end(), file.end() - 32);
  }
  const auto checkpoint = ParseCheckpoint(file, Digest{});
  if (!checkpoint.ok()) {
    return 0;
  }
  const auto again =
      ParseCheckpoint(domicile::models::PrintCheckpoint(*checkpoint, Digest{}), Digest{});
  DOMICILE_CHECK(again.ok() && *again == *checkpoint);
  return 0;
}
