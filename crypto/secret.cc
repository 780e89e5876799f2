#include "crypto/secret.h"

#include <utility>

#include <openssl/crypto.h>

namespace domicile::crypto {

void Wipe(void* memory, std::size_t size) { OPENSSL_cleanse(memory, size); }

bool EqualInConstantTime(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

SecretBytes::SecretBytes(SecretBytes&& other) noexcept : bytes_(std::move(other.bytes_)) {
  other.bytes_.clear();
}

SecretBytes& SecretBytes::operator=(SecretBytes&& other) noexcept {
  if (this != &other) {
    Wipe(bytes_.data(), bytes_.size());
    bytes_ = std::move(other.bytes_);
    other.bytes_.clear();
  }
  return *this;
}

SecretBytes::~SecretBytes() { Wipe(bytes_.data(), bytes_.size()); }

}  // namespace domicile::crypto
