#include "crypto/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/status.h"

namespace domicile::crypto {

namespace {

// Fetching an algorithm walks the provider tables; once is enough. Never freed: OpenSSL's own exit
// handler runs at an unknown point among our destructors.
const EVP_MD* Algorithm() {
  static const EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  DOMICILE_CHECK(kSha256 != nullptr);
  return kSha256;
}

}  // namespace

void Sha256Hasher::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256Hasher::Sha256Hasher() : context_(EVP_MD_CTX_new()) {
  DOMICILE_CHECK(context_ != nullptr);
  DOMICILE_CHECK(EVP_DigestInit_ex2(context_.get(), Algorithm(), nullptr) == 1);
}

void Sha256Hasher::Update(ByteSpan bytes) {
  DOMICILE_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256Hasher::Finish() {
  Digest digest;
  unsigned size = 0;
  DOMICILE_CHECK(EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), &size) == 1);
  DOMICILE_CHECK(size == digest.bytes.size());
  DOMICILE_CHECK(EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) == 1);
  return digest;
}

Digest Sha256(ByteSpan bytes) {
  // One context a thread: for the two short strings of a tree node, making one costs as much as
  // the hash.
  thread_local Sha256Hasher hasher;
  hasher.Update(bytes);
  return hasher.Finish();
}

Digest HmacSha256(ByteSpan key, ByteSpan data) {
  Digest digest;
  unsigned size = 0;
  // HMAC() takes a null key for "the last one"; an empty key must not be null.
  static constexpr std::uint8_t kEmpty = 0;
  const void* const key_bytes = key.empty() ? &kEmpty : key.data();
  DOMICILE_CHECK(key.size() <= std::size_t{1} << 30U);
  DOMICILE_CHECK(HMAC(Algorithm(), key_bytes, static_cast<int>(key.size()), data.data(),
                      data.size(), digest.bytes.data(), &size) != nullptr);
  DOMICILE_CHECK(size == digest.bytes.size());
  return digest;
}

}  // namespace domicile::crypto
