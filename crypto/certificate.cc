#include "crypto/certificate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <openssl/err.h>

#include "base/text.h"
#include "crypto/internal/x509.h"

namespace domicile::crypto {

namespace {

using internal::Certificate;
using internal::NameKind;
using internal::RevocationList;
using internal::SubjectName;

constexpr int kDeepestPath = 4;    // intermediates between leaf and root
constexpr int kSecurityLevel = 2;  // 112 bits: no SHA-1, no RSA below 2048

Status Refuse(const std::string& rule) {
  return Error(StatusCode::kUnauthenticated, "certificate refused: " + rule);
}

// What could not be read is refused like what could not be verified.
template <typename T>
StatusOr<T> AsRefusal(StatusOr<T> result) {
  if (!result.ok()) {
    return Refuse(std::string(Message(result.status())));
  }
  return result;
}

Status CheckPath(const std::vector<Certificate>& chain, const std::vector<Certificate>& roots,
                 const std::vector<RevocationList>& crls, const SvidRules& rules) {
  const internal::Store store(X509_STORE_new());
  const internal::StoreContext context(X509_STORE_CTX_new());
  const internal::CertificateStack untrusted(sk_X509_new_null());
  DOMICILE_CHECK(store != nullptr && context != nullptr && untrusted != nullptr);
  for (const Certificate& root : roots) {
    // Without partial chains OpenSSL insists on this too; said here, it cannot change by a flag.
    if (X509_self_signed(root.get(), 1) != 1) {
      ERR_clear_error();
      return Refuse("a trusted root is not self-signed");
    }
    DOMICILE_CHECK(X509_STORE_add_cert(store.get(), root.get()) == 1);
  }
  for (const RevocationList& crl : crls) {
    DOMICILE_CHECK(X509_STORE_add_crl(store.get(), crl.get()) == 1);
  }
  for (auto it = chain.begin() + 1; it != chain.end(); ++it) {
    DOMICILE_CHECK(sk_X509_push(untrusted.get(), it->get()) > 0);
  }
  DOMICILE_CHECK(
      X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), untrusted.get()) == 1);
  const int purpose = rules.is_server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  DOMICILE_CHECK(X509_STORE_CTX_set_purpose(context.get(), purpose) == 1);
  X509_VERIFY_PARAM* const param = X509_STORE_CTX_get0_param(context.get());  // borrowed
  unsigned long flags = X509_V_FLAG_X509_STRICT;  // NOLINT(google-runtime-int): OpenSSL's type
  if (!crls.empty()) {
    flags |= X509_V_FLAG_CRL_CHECK;
  }
  DOMICILE_CHECK(X509_VERIFY_PARAM_set_flags(param, flags) == 1);
  X509_VERIFY_PARAM_set_depth(param, kDeepestPath);
  X509_VERIFY_PARAM_set_auth_level(param, kSecurityLevel);
  X509_VERIFY_PARAM_set_time(
      param, std::chrono::floor<std::chrono::seconds>(rules.now).time_since_epoch().count());
  const int verified = X509_verify_cert(context.get());
  ERR_clear_error();
  if (verified != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    return Refuse(std::string(X509_verify_cert_error_string(error)) + " (at depth " +
                  std::to_string(X509_STORE_CTX_get_error_depth(context.get())) + ")");
  }
  return OkStatus();
}

// The X509-SVID rules for a leaf (section 4), which OpenSSL does not check.
Status CheckLeafUse(X509* leaf, bool is_server) {
  if (X509_check_ca(leaf) != 0) {
    return Refuse("the leaf is a CA certificate");
  }
  // Both return UINT32_MAX where the extension is absent: absent is not "anything".
  const std::uint32_t flags = X509_get_extension_flags(leaf);
  const std::uint32_t usage = X509_get_key_usage(leaf);
  if ((flags & EXFLAG_KUSAGE) == 0 || (usage & KU_DIGITAL_SIGNATURE) == 0) {
    return Refuse("the key usage does not include digitalSignature");
  }
  if ((usage & (KU_KEY_CERT_SIGN | KU_CRL_SIGN)) != 0) {
    return Refuse("the key usage of a leaf includes keyCertSign or cRLSign");
  }
  const std::uint32_t wanted = is_server ? XKU_SSL_SERVER : XKU_SSL_CLIENT;
  if ((flags & EXFLAG_XKUSAGE) == 0 || (X509_get_extended_key_usage(leaf) & wanted) == 0) {
    return Refuse(is_server ? "the extended key usage does not include serverAuth"
                            : "the extended key usage does not include clientAuth");
  }
  return OkStatus();
}

StatusOr<std::string> OneUri(const X509* leaf) {
  ASSIGN_OR_RETURN(const std::vector<SubjectName> names, AsRefusal(internal::SubjectNamesOf(leaf)));
  const auto is_uri = [](const SubjectName& name) { return name.kind == NameKind::kUri; };
  const auto count = std::count_if(names.begin(), names.end(), is_uri);
  if (count != 1) {
    return Refuse("it has " + std::to_string(count) +
                  " URI names in subjectAltName, and must have exactly one; the common name is "
                  "not used");
  }
  return std::find_if(names.begin(), names.end(), is_uri)->text;
}

struct VerifiedLeaf {
  Certificate certificate;
  Svid svid;
};

StatusOr<VerifiedLeaf> VerifyLeaf(std::string_view chain_pem, std::string_view roots_pem,
                                  const SvidRules& rules) {
  ASSIGN_OR_RETURN(std::vector<Certificate> chain,
                   AsRefusal(internal::ParseCertificates(chain_pem, "certificate chain")));
  ASSIGN_OR_RETURN(const std::vector<Certificate> roots,
                   AsRefusal(internal::ParseCertificates(roots_pem, "root certificates")));
  std::vector<RevocationList> crls;
  if (!rules.crls_pem.empty()) {
    ASSIGN_OR_RETURN(crls, AsRefusal(internal::ParseRevocationLists(rules.crls_pem)));
  }
  RETURN_IF_ERROR(CheckPath(chain, roots, crls, rules));
  X509* const leaf = chain.front().get();
  RETURN_IF_ERROR(CheckLeafUse(leaf, rules.is_server));
  VerifiedLeaf verified;
  ASSIGN_OR_RETURN(verified.svid.uri, OneUri(leaf));
  ASSIGN_OR_RETURN(const SpiffeForm form, AsRefusal(ParseSpiffeForm(verified.svid.uri)));
  if (form.trust_domain != rules.trust_domain) {
    return Refuse("the trust domain is `" + Visible(form.trust_domain) + "`, not `" +
                  rules.trust_domain + "`");
  }
  verified.svid.key = internal::KeyDigestOf(leaf);
  verified.svid.serial = internal::SerialOf(leaf);
  ASSIGN_OR_RETURN(verified.svid.not_before,
                   AsRefusal(internal::WallTimeOf(X509_get0_notBefore(leaf))));
  ASSIGN_OR_RETURN(verified.svid.not_after,
                   AsRefusal(internal::WallTimeOf(X509_get0_notAfter(leaf))));
  verified.certificate = std::move(chain.front());
  return verified;
}

}  // namespace

StatusOr<Svid> VerifySvid(std::string_view chain_pem, std::string_view roots_pem,
                          const SvidRules& rules) {
  ASSIGN_OR_RETURN(VerifiedLeaf leaf, VerifyLeaf(chain_pem, roots_pem, rules));
  return std::move(leaf.svid);
}

StatusOr<PeerIdentity> VerifyPeerCertificate(std::string_view chain_pem, std::string_view roots_pem,
                                             const PeerRules& rules) {
  const SvidRules svid_rules = {.trust_domain = rules.federation,
                                .is_server = rules.is_server,
                                .now = rules.now,
                                .crls_pem = {}};
  ASSIGN_OR_RETURN(const VerifiedLeaf leaf, VerifyLeaf(chain_pem, roots_pem, svid_rules));
  const Svid& svid = leaf.svid;
  if (!internal::IsAllowedKey(leaf.certificate.get())) {
    return Refuse("the key is neither P-256 nor Ed25519");
  }
  if (svid.not_after - svid.not_before > kLongestCertificate) {
    return Refuse("it is made for longer than 90 days");
  }
  ASSIGN_OR_RETURN(SpiffeName spiffe, AsRefusal(ParseSpiffe(svid.uri)));
  return PeerIdentity{.spiffe = std::move(spiffe),
                      .key = svid.key,
                      .serial = svid.serial,
                      .not_after = svid.not_after};
}

StatusOr<CertificateFacts> ReadCertificate(std::string_view chain_pem) {
  ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                   internal::ParseCertificates(chain_pem, "certificate"));
  X509* const leaf = chain.front().get();
  ASSIGN_OR_RETURN(const std::vector<SubjectName> names, internal::SubjectNamesOf(leaf));
  CertificateFacts facts;
  std::string uri;
  for (const SubjectName& name : names) {
    switch (name.kind) {
      case NameKind::kUri:
        uri = name.text;
        break;
      case NameKind::kDns:
        facts.hosts.push_back(name.text);
        break;
      case NameKind::kIp:
        facts.hosts.push_back(internal::PrintAddress(name.text));
        break;
      case NameKind::kEmail:
      case NameKind::kOther:
        break;
    }
  }
  ASSIGN_OR_RETURN(facts.spiffe, ParseSpiffe(uri));
  facts.key = internal::KeyDigestOf(leaf);
  facts.serial = internal::SerialOf(leaf);
  ASSIGN_OR_RETURN(facts.not_before, internal::WallTimeOf(X509_get0_notBefore(leaf)));
  ASSIGN_OR_RETURN(facts.not_after, internal::WallTimeOf(X509_get0_notAfter(leaf)));
  return facts;
}

Status CheckKeyMatches(std::string_view key_pem, std::string_view chain_pem) {
  ASSIGN_OR_RETURN(const internal::Key key, internal::ParsePrivateKey(key_pem, "private key"));
  ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                   internal::ParseCertificates(chain_pem, "certificate"));
  const bool matches = X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!matches) {
    return Error(StatusCode::kUnauthenticated,
                 "the private key is not that of the certificate: key and certificate must come "
                 "from the same `domicile ca issue`");
  }
  return OkStatus();
}

}  // namespace domicile::crypto
