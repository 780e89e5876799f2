// Makes certificates: what Issue and MakeAuthority need, and what tests need to make bad ones.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "crypto/internal/openssl.h"
#include "crypto/internal/x509.h"

namespace domicile::crypto::internal {

inline constexpr std::size_t kLongestNamePart = 64;  // ub-common-name, ub-organization-name

// Extensions are in OpenSSL's own notation (x509v3_config); an empty text leaves the extension out.
// They come from our code, never from a caller's text: names that do are in `names`.
struct CertificateSpec {
  std::string common_name;
  std::string organisation;  // left out if empty
  WallTime not_before;
  WallTime not_after;
  std::string basic_constraints;
  std::string key_usage;
  std::string extended_key_usage;
  std::string name_constraints;
  std::vector<SubjectName> names;
};

Key MakeP256Key();

// A certificate for the public half of `key`, signed by `issuer_key`; self-signed if `issuer` is
// null. A random serial of 126 bits; key identifiers. Errors: kInvalidArgument (a name part too
// long, an extension that does not parse).
StatusOr<Certificate> MakeCertificate(const CertificateSpec& spec, EVP_PKEY* key, X509* issuer,
                                      EVP_PKEY* issuer_key);

}  // namespace domicile::crypto::internal
