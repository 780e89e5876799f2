// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104).
#pragma once

#include <memory>

#include "base/bytes.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace domicile::crypto {

// The digest of bytes that are at hand. Reentrant.
Digest Sha256(ByteSpan bytes);

// The digest of bytes that come piece by piece:
//
//   Sha256Hasher hasher;
//   hasher.Update(first);
//   hasher.Update(second);
//   const Digest digest = hasher.Finish();
//
// Move-only; a moved-from hasher may only be destroyed or assigned to. One thread at a time.
class Sha256Hasher {
 public:
  Sha256Hasher();
  Sha256Hasher(Sha256Hasher&&) noexcept = default;
  Sha256Hasher& operator=(Sha256Hasher&&) noexcept = default;
  ~Sha256Hasher() = default;

  void Update(ByteSpan bytes);
  // The digest of everything since construction or the last Finish; the hasher starts anew.
  Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// `key` of any length; a key of 32 bytes is as good as any longer one. Reentrant.
Digest HmacSha256(ByteSpan key, ByteSpan data);

}  // namespace domicile::crypto
