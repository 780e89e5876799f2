#include "crypto/internal/ed25519.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/status.h"
#include "crypto/internal/openssl.h"

namespace domicile::crypto::internal {

namespace {

Key PrivateKey(ByteSpan seed) {
  DOMICILE_CHECK(seed.size() == kEd25519SeedBytes);
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  DOMICILE_CHECK(key != nullptr);
  return key;
}

}  // namespace

Ed25519Key Ed25519PublicKey(ByteSpan seed) {
  Ed25519Key bytes{};
  std::size_t size = bytes.size();
  DOMICILE_CHECK(EVP_PKEY_get_raw_public_key(PrivateKey(seed).get(), bytes.data(), &size) == 1);
  DOMICILE_CHECK(size == bytes.size());
  return bytes;
}

Ed25519Signature Ed25519Sign(ByteSpan seed, ByteSpan message) {
  const Key key = PrivateKey(seed);
  const DigestContext context(EVP_MD_CTX_new());
  DOMICILE_CHECK(context != nullptr);
  DOMICILE_CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  Ed25519Signature signature{};
  std::size_t size = signature.size();
  DOMICILE_CHECK(
      EVP_DigestSign(context.get(), signature.data(), &size, message.data(), message.size()) == 1);
  DOMICILE_CHECK(size == signature.size());
  return signature;
}

bool Ed25519Verifies(const Ed25519Key& key, ByteSpan message, ByteSpan signature) {
  if (signature.size() != kEd25519SignatureBytes) {
    return false;
  }
  const Key handle(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  const DigestContext context(EVP_MD_CTX_new());
  const bool verifies =
      handle != nullptr && context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, handle.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(),
                       message.size()) == 1;
  ERR_clear_error();  // a bad signature leaves entries that a later caller would take for its own
  return verifies;
}

}  // namespace domicile::crypto::internal
