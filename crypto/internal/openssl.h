// Owners of OpenSSL's handles. Included by this folder's sources only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace domicile::crypto::internal {

// A deleter that calls `Free`.
template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};

using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using RevocationList = std::unique_ptr<X509_CRL, Deleter<X509_CRL_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using BasicConstraints = std::unique_ptr<BASIC_CONSTRAINTS, Deleter<BASIC_CONSTRAINTS_free>>;
using Constraints = std::unique_ptr<NAME_CONSTRAINTS, Deleter<NAME_CONSTRAINTS_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
using NameHandle = std::unique_ptr<GENERAL_NAME, Deleter<GENERAL_NAME_free>>;
using Address = std::unique_ptr<ASN1_OCTET_STRING, Deleter<ASN1_OCTET_STRING_free>>;
using BigNumber = std::unique_ptr<BIGNUM, Deleter<BN_free>>;
using Buffer = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

// Borrows a stack's certificates; frees the stack only.
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using CertificateStack = std::unique_ptr<STACK_OF(X509), FreeStack>;

// A read-only buffer over `text`, which must outlive it; null if `text` is longer than an int.
Buffer ReadBuffer(std::string_view text);
// What was written to a memory buffer.
std::string TextOf(BIO* buffer);

}  // namespace domicile::crypto::internal
