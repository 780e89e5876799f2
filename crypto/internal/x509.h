// Certificates as values: PEM, names, times, digests. What is read here is verified nowhere here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "crypto/internal/openssl.h"

namespace domicile::crypto::internal {

inline constexpr std::size_t kLongestPem = std::size_t{1} << 16U;
inline constexpr std::size_t kMostCertificates = 6;

// All certificates of a PEM text, 1 to kMostCertificates. `what` names the text in errors. Never
// asks for a passphrase. Errors: kInvalidArgument.
StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem, std::string_view what);
StatusOr<std::vector<RevocationList>> ParseRevocationLists(std::string_view pem);
StatusOr<Key> ParsePrivateKey(std::string_view pem, std::string_view what);

std::string PrintPem(X509* certificate);
std::string PrintPem(EVP_PKEY* key);

enum class NameKind : std::uint8_t { kOther, kUri, kDns, kIp, kEmail };

struct SubjectName {
  NameKind kind = NameKind::kOther;
  std::string text;  // of an IP address its 4 or 16 raw bytes; of another kind of name nothing
};

// The subject alternative names. Empty if there is no such extension. Errors: kInvalidArgument (the
// extension is malformed or occurs twice).
StatusOr<std::vector<SubjectName>> SubjectNamesOf(const X509* certificate);

Digest KeyDigestOf(const X509* certificate);    // SHA-256 of SubjectPublicKeyInfo
std::string SerialOf(const X509* certificate);  // lower-case hexadecimal
// Times that WallTime cannot hold become its ends. Errors: kInvalidArgument (no such time).
StatusOr<WallTime> WallTimeOf(const ASN1_TIME* time);

// P-256, or Ed25519.
bool IsAllowedKey(const X509* certificate);

// "192.0.2.1" or "2001:db8::1" to 4 or 16 bytes; empty if the text is no address. And back.
Bytes ParseAddress(std::string_view text);
std::string PrintAddress(std::string_view raw);

}  // namespace domicile::crypto::internal
