#include "crypto/internal/x509.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <limits>
#include <utility>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "crypto/sha256.h"

namespace domicile::crypto::internal {

namespace {

Status Refuse(std::string_view what, std::string_view why) {
  ERR_clear_error();
  return Error(StatusCode::kInvalidArgument, std::string(what) + ": " + std::string(why));
}

// OpenSSL's own callback would ask on the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

// Reads PEM blocks of one type until there are no more.
template <typename Handle, auto Read>
StatusOr<std::vector<Handle>> ParseBlocks(std::string_view pem, std::string_view what) {
  if (pem.size() > kLongestPem) {
    return Refuse(what, "longer than 64 KiB");
  }
  const Buffer buffer = ReadBuffer(pem);
  DOMICILE_CHECK(buffer != nullptr);
  std::vector<Handle> blocks;
  ERR_clear_error();
  while (true) {
    Handle block(Read(buffer.get(), nullptr, NoPassphrase, nullptr));
    if (block == nullptr) {
      break;
    }
    if (blocks.size() == kMostCertificates) {
      return Refuse(what, "more than 6 certificates");
    }
    blocks.push_back(std::move(block));
  }
  // Only "no further BEGIN line" is a proper end; whatever else is a damaged block.
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's type
  if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE) {
    return Refuse(what, "not well-formed PEM");
  }
  ERR_clear_error();
  if (blocks.empty()) {
    return Refuse(what, "holds no PEM block of the kind wanted");
  }
  return blocks;
}

std::string_view Ia5Text(const ASN1_STRING* text) {
  // Length-delimited, so that an embedded NUL stays visible to the checks that follow.
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

SubjectName Convert(const GENERAL_NAME* name) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(name, &type);
  switch (type) {
    case GEN_URI:
      return {NameKind::kUri, std::string(Ia5Text(static_cast<const ASN1_STRING*>(value)))};
    case GEN_DNS:
      return {NameKind::kDns, std::string(Ia5Text(static_cast<const ASN1_STRING*>(value)))};
    case GEN_EMAIL:
      return {NameKind::kEmail, std::string(Ia5Text(static_cast<const ASN1_STRING*>(value)))};
    case GEN_IPADD:
      return {NameKind::kIp, std::string(Ia5Text(static_cast<const ASN1_STRING*>(value)))};
    default:
      return {};
  }
}

}  // namespace

StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem, std::string_view what) {
  return ParseBlocks<Certificate, PEM_read_bio_X509>(pem, what);
}

StatusOr<std::vector<RevocationList>> ParseRevocationLists(std::string_view pem) {
  return ParseBlocks<RevocationList, PEM_read_bio_X509_CRL>(pem, "revocation list");
}

StatusOr<Key> ParsePrivateKey(std::string_view pem, std::string_view what) {
  const Buffer buffer = pem.size() > kLongestPem ? nullptr : ReadBuffer(pem);
  Key key(buffer == nullptr
              ? nullptr
              : PEM_read_bio_PrivateKey(buffer.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return Refuse(what, "not an unencrypted private key in PEM");
  }
  return key;
}

std::string PrintPem(X509* certificate) {
  const Buffer buffer(BIO_new(BIO_s_mem()));
  DOMICILE_CHECK(buffer != nullptr && PEM_write_bio_X509(buffer.get(), certificate) == 1);
  return TextOf(buffer.get());
}

std::string PrintPem(EVP_PKEY* key) {
  // A secure-memory BIO is wiped when freed.
  const Buffer buffer(BIO_new(BIO_s_secmem()));
  DOMICILE_CHECK(
      buffer != nullptr &&
      PEM_write_bio_PKCS8PrivateKey(buffer.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return TextOf(buffer.get());
}

StatusOr<std::vector<SubjectName>> SubjectNamesOf(const X509* certificate) {
  int critical = 0;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, nullptr)));
  std::vector<SubjectName> found;
  if (names == nullptr) {
    if (critical == -1) {
      return found;  // no such extension
    }
    return Refuse("certificate", critical == -2 ? "two subjectAltName extensions"
                                                : "a malformed subjectAltName extension");
  }
  const int count = sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    found.push_back(Convert(sk_GENERAL_NAME_value(names.get(), i)));
  }
  return found;
}

Digest KeyDigestOf(const X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  DOMICILE_CHECK(size > 0);
  const Digest digest = Sha256(ByteSpan(der, static_cast<std::size_t>(size)));
  OPENSSL_free(der);
  return digest;
}

std::string SerialOf(const X509* certificate) {
  const BigNumber number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  DOMICILE_CHECK(number != nullptr);
  char* const hex = BN_bn2hex(number.get());
  DOMICILE_CHECK(hex != nullptr);
  std::string text(hex);
  OPENSSL_free(hex);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return text;
}

StatusOr<WallTime> WallTimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return Refuse("certificate", "a time that is none");
  }
  const auto seconds = std::chrono::seconds(timegm(&parts));
  using Limits = std::numeric_limits<std::chrono::nanoseconds::rep>;
  static constexpr auto kEnd =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::nanoseconds(Limits::max()));
  return WallTime(std::clamp(seconds, -kEnd, kEnd));
}

bool IsAllowedKey(const X509* certificate) {
  EVP_PKEY* const key = X509_get0_pubkey(certificate);  // borrowed
  if (key == nullptr) {
    return false;
  }
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) {
    return true;
  }
  std::array<char, 64> group{};
  std::size_t size = 0;
  const bool is_p256 = EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
                       EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) == 1 &&
                       std::string_view(group.data(), size) == "prime256v1";
  ERR_clear_error();
  return is_p256;
}

Bytes ParseAddress(std::string_view text) {
  const std::string copy(text);  // inet_pton wants a terminator
  if (copy.find('\0') != std::string::npos) {
    return {};
  }
  Bytes bytes(16);
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) {
    return bytes;
  }
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) {
    bytes.resize(4);
    return bytes;
  }
  return {};
}

std::string PrintAddress(std::string_view raw) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = raw.size() == 4 ? AF_INET : AF_INET6;
  if ((raw.size() != 4 && raw.size() != 16) ||
      inet_ntop(family, raw.data(), text.data(), text.size()) == nullptr) {
    return "(malformed)";
  }
  return text.data();
}

}  // namespace domicile::crypto::internal
