#include "crypto/internal/x509_builder.h"

#include <chrono>
#include <utility>

#include <openssl/err.h>

namespace domicile::crypto::internal {

namespace {

constexpr int kVersion3 = 2;
constexpr int kSerialBits = 126;  // positive in two's complement, 16 octets at most

Status Refuse(std::string_view what) {
  ERR_clear_error();
  return Error(StatusCode::kInvalidArgument, "making a certificate: " + std::string(what));
}

Status SetName(X509_NAME* name, const char* field, const std::string& value) {
  if (!value.empty() &&
      X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(value.data()),
                                 static_cast<int>(value.size()), -1, 0) != 1) {
    return Refuse("a part of the subject's name is longer than 64 characters");
  }
  return OkStatus();
}

void SetTime(ASN1_TIME* at, WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch();
  DOMICILE_CHECK(ASN1_TIME_set(at, seconds.count()) != nullptr);
}

void SetSerial(X509* certificate) {
  const BigNumber number(BN_new());
  DOMICILE_CHECK(number != nullptr &&
                 BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1);
  DOMICILE_CHECK(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr);
}

Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  if (value.empty()) {
    return OkStatus();
  }
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return Refuse("the extension `" + std::string(OBJ_nid2sn(nid)) + "` is malformed");
  }
  return OkStatus();
}

NameHandle MakeName(const SubjectName& name) {
  NameHandle made(GENERAL_NAME_new());
  DOMICILE_CHECK(made != nullptr);
  ASN1_STRING* const value =
      name.kind == NameKind::kIp ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  DOMICILE_CHECK(value != nullptr &&
                 ASN1_STRING_set(value, name.text.data(), static_cast<int>(name.text.size())) == 1);
  int type = GEN_URI;
  switch (name.kind) {
    case NameKind::kUri:
    case NameKind::kOther:
      break;
    case NameKind::kDns:
      type = GEN_DNS;
      break;
    case NameKind::kIp:
      type = GEN_IPADD;
      break;
    case NameKind::kEmail:
      type = GEN_EMAIL;
      break;
  }
  GENERAL_NAME_set0_value(made.get(), type, value);
  return made;
}

void AddNames(X509* certificate, const std::vector<SubjectName>& names) {
  if (names.empty()) {
    return;
  }
  const Names stack(sk_GENERAL_NAME_new_null());
  DOMICILE_CHECK(stack != nullptr);
  for (const SubjectName& name : names) {
    DOMICILE_CHECK(sk_GENERAL_NAME_push(stack.get(), MakeName(name).release()) > 0);
  }
  DOMICILE_CHECK(X509_add1_ext_i2d(certificate, NID_subject_alt_name, stack.get(), 0, 0) == 1);
}

}  // namespace

Key MakeP256Key() {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  DOMICILE_CHECK(key != nullptr);
  return key;
}

StatusOr<Certificate> MakeCertificate(const CertificateSpec& spec, EVP_PKEY* key, X509* issuer,
                                      EVP_PKEY* issuer_key) {
  Certificate certificate(X509_new());
  DOMICILE_CHECK(certificate != nullptr);
  X509* const made = certificate.get();
  X509* const signer = issuer == nullptr ? made : issuer;
  DOMICILE_CHECK(X509_set_version(made, kVersion3) == 1 && X509_set_pubkey(made, key) == 1);
  SetSerial(made);
  SetTime(X509_getm_notBefore(made), spec.not_before);
  SetTime(X509_getm_notAfter(made), spec.not_after);
  X509_NAME* const subject = X509_get_subject_name(made);  // borrowed
  RETURN_IF_ERROR(SetName(subject, "O", spec.organisation));
  RETURN_IF_ERROR(SetName(subject, "CN", spec.common_name));
  DOMICILE_CHECK(X509_set_issuer_name(made, X509_get_subject_name(signer)) == 1);
  RETURN_IF_ERROR(AddExtension(made, signer, NID_basic_constraints, spec.basic_constraints));
  RETURN_IF_ERROR(AddExtension(made, signer, NID_key_usage, spec.key_usage));
  RETURN_IF_ERROR(AddExtension(made, signer, NID_ext_key_usage, spec.extended_key_usage));
  RETURN_IF_ERROR(AddExtension(made, signer, NID_name_constraints, spec.name_constraints));
  RETURN_IF_ERROR(AddExtension(made, signer, NID_subject_key_identifier, "hash"));
  // After the subject key identifier, which a self-signed certificate refers to.
  RETURN_IF_ERROR(AddExtension(made, signer, NID_authority_key_identifier,
                               issuer == nullptr ? "" : "keyid:always"));
  AddNames(made, spec.names);
  const EVP_MD* const digest =
      EVP_PKEY_get_base_id(issuer_key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
  DOMICILE_CHECK(X509_sign(made, issuer_key, digest) > 0);
  return certificate;
}

}  // namespace domicile::crypto::internal
