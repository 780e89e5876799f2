#include <chrono>
#include <utility>

#include <openssl/err.h>

#include "base/ids.h"
#include "base/text.h"
#include "crypto/certificate.h"
#include "crypto/internal/x509.h"
#include "crypto/internal/x509_builder.h"

namespace domicile::crypto {

namespace {

using internal::CertificateSpec;
using internal::Key;
using internal::NameKind;

constexpr std::size_t kLongestHost = 253;

Status Refuse(std::string_view field, const std::string& why) {
  return Error(StatusCode::kInvalidArgument,
               "certificate request, " + std::string(field) + ": " + why);
}

Status CheckDnsName(const std::string& name) {
  bool fits = !name.empty() && name.size() <= kLongestHost && internal::ParseAddress(name).empty();
  for (const std::string_view label : Split(name, '.')) {
    fits = fits && SiteId::Parse(label).ok();  // a site name has the form of a DNS label
  }
  if (!fits) {
    return Refuse("host", "`" + Visible(name) +
                              "` is not a DNS name in lower case without wildcard, at most 253 "
                              "characters; addresses go into the list of addresses");
  }
  return OkStatus();
}

Status CheckRequest(const CertificateRequest& request) {
  const auto parsed = ParseSpiffe(PrintSpiffe(request.spiffe));
  if (!parsed.ok() || *parsed != request.spiffe) {
    return Refuse("name", parsed.ok() ? "the parts do not make a SPIFFE name"
                                      : std::string(Message(parsed.status())));
  }
  if (!request.server && !request.client) {
    return Refuse("use", "neither server nor client");
  }
  if (request.server && request.dns_names.empty() && request.ip_addresses.empty()) {
    return Refuse("host", "a server needs at least one DNS name or address");
  }
  for (const std::string& name : request.dns_names) {
    RETURN_IF_ERROR(CheckDnsName(name));
  }
  for (const std::string& address : request.ip_addresses) {
    if (internal::ParseAddress(address).empty()) {
      return Refuse("address", "`" + Visible(address) + "` is not an IPv4 or IPv6 address");
    }
  }
  if (request.not_after <= request.not_before) {
    return Refuse("life", "it ends before it begins");
  }
  if (request.not_after - request.not_before > kLongestCertificate) {
    return Refuse("life", "longer than 90 days");
  }
  return OkStatus();
}

// The issuing certificate must be able to vouch for this request; a certificate that no peer will
// accept is better not made.
Status CheckIssuer(X509* issuer, const EVP_PKEY* key, const CertificateRequest& request) {
  const bool matches = X509_check_private_key(issuer, key) == 1;
  ERR_clear_error();
  if (!matches) {
    return Refuse("issuer", "the issuing key is not that of the issuing certificate");
  }
  ASSIGN_OR_RETURN(const WallTime begin, internal::WallTimeOf(X509_get0_notBefore(issuer)));
  ASSIGN_OR_RETURN(const WallTime end, internal::WallTimeOf(X509_get0_notAfter(issuer)));
  if (request.not_before < begin || request.not_after > end) {
    return Refuse("life", "it is not within that of the issuing certificate, which ends at " +
                              PrintTime(end));
  }
  return OkStatus();
}

// The issuer speaks for one federation only, by its name constraint.
Status CheckConstraint(X509* issuer, X509* made, const std::string& federation) {
  const internal::Constraints constraints(static_cast<NAME_CONSTRAINTS*>(
      X509_get_ext_d2i(issuer, NID_name_constraints, nullptr, nullptr)));
  // The check reads names that OpenSSL has cached, and a certificate just made has none cached yet.
  DOMICILE_CHECK(X509_check_purpose(made, -1, 0) == 1);
  if (constraints == nullptr || NAME_CONSTRAINTS_check(made, constraints.get()) != X509_V_OK) {
    ERR_clear_error();
    return Refuse("name", "the issuing certificate is not of the federation `" + federation + "`");
  }
  return OkStatus();
}

std::vector<internal::SubjectName> NamesOf(const CertificateRequest& request) {
  std::vector<internal::SubjectName> names = {{NameKind::kUri, PrintSpiffe(request.spiffe)}};
  for (const std::string& name : request.dns_names) {
    names.push_back({NameKind::kDns, name});
  }
  for (const std::string& address : request.ip_addresses) {
    names.push_back({NameKind::kIp, std::string(AsText(internal::ParseAddress(address)))});
  }
  return names;
}

CertificateSpec AuthoritySpec(std::string_view name, std::string_view federation,
                              WallTime not_before, WallTime not_after) {
  CertificateSpec spec;
  spec.common_name = std::string(name);
  spec.organisation = std::string(federation.substr(0, internal::kLongestNamePart));
  spec.not_before = not_before;
  spec.not_after = not_after;
  spec.key_usage = "critical,keyCertSign,cRLSign";
  return spec;
}

}  // namespace

StatusOr<Authority> MakeAuthority(std::string_view federation, WallTime not_before,
                                  WallTime not_after) {
  RETURN_IF_ERROR(CheckFederationName(federation));
  if (not_after <= not_before) {
    return Refuse("life", "it ends before it begins");
  }
  const Key root_key = internal::MakeP256Key();
  CertificateSpec root = AuthoritySpec("Domicile root", federation, not_before, not_after);
  root.basic_constraints = "critical,CA:TRUE,pathlen:1";
  ASSIGN_OR_RETURN(const internal::Certificate root_certificate,
                   internal::MakeCertificate(root, root_key.get(), nullptr, root_key.get()));
  const Key issuing_key = internal::MakeP256Key();
  CertificateSpec issuing = AuthoritySpec("Domicile issuing", federation, not_before, not_after);
  issuing.basic_constraints = "critical,CA:TRUE,pathlen:0";
  // CheckFederationName leaves nothing that could mean something else in this little language.
  issuing.name_constraints = "critical,permitted;URI:" + std::string(federation);
  ASSIGN_OR_RETURN(const internal::Certificate issuing_certificate,
                   internal::MakeCertificate(issuing, issuing_key.get(), root_certificate.get(),
                                             root_key.get()));
  return Authority{.root_key_pem = internal::PrintPem(root_key.get()),
                   .root_pem = internal::PrintPem(root_certificate.get()),
                   .issuing_key_pem = internal::PrintPem(issuing_key.get()),
                   .issuing_pem = internal::PrintPem(issuing_certificate.get())};
}

StatusOr<IssuedCertificate> Issue(std::string_view issuing_key_pem, std::string_view issuing_pem,
                                  const CertificateRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  ASSIGN_OR_RETURN(const Key issuing_key,
                   internal::ParsePrivateKey(issuing_key_pem, "issuing key"));
  ASSIGN_OR_RETURN(const auto issuers,
                   internal::ParseCertificates(issuing_pem, "issuing certificate"));
  X509* const issuer = issuers.front().get();
  RETURN_IF_ERROR(CheckIssuer(issuer, issuing_key.get(), request));
  const Key key = internal::MakeP256Key();
  CertificateSpec spec;
  spec.common_name = request.spiffe.name;  // for people; nothing reads it
  spec.organisation = request.spiffe.federation.substr(0, internal::kLongestNamePart);
  spec.not_before = request.not_before;
  spec.not_after = request.not_after;
  spec.basic_constraints = "critical,CA:FALSE";
  spec.key_usage = "critical,digitalSignature";
  spec.extended_key_usage = request.server && request.client ? "serverAuth,clientAuth"
                            : request.server                 ? "serverAuth"
                                                             : "clientAuth";
  spec.names = NamesOf(request);
  ASSIGN_OR_RETURN(const internal::Certificate certificate,
                   internal::MakeCertificate(spec, key.get(), issuer, issuing_key.get()));
  RETURN_IF_ERROR(CheckConstraint(issuer, certificate.get(), request.spiffe.federation));
  return IssuedCertificate{
      .key_pem = internal::PrintPem(key.get()),
      .chain_pem = internal::PrintPem(certificate.get()) + internal::PrintPem(issuer),
      .key = internal::KeyDigestOf(certificate.get())};
}

}  // namespace domicile::crypto
