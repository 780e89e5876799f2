#include "tests/support/test_certificates.h"

#include <chrono>

#include "crypto/internal/x509_builder.h"

namespace domicile::test {
namespace {

using std::chrono::hours;
namespace internal = crypto::internal;

}  // namespace

TestAuthority::TestAuthority(const std::string& federation)
    : federation_(federation), now_(SystemClock().Now()) {
  auto made = crypto::MakeAuthority(federation, now_ - hours(240), now_ + hours(240));
  DOMICILE_CHECK(made.ok());
  authority_ = *std::move(made);
}

crypto::CertificateRequest TestAuthority::Request(crypto::Role role,
                                                  const std::string& name) const {
  crypto::CertificateRequest request;
  const bool has_place = role == crypto::Role::kSite || role == crypto::Role::kAggregator;
  request.spiffe = {
      .federation = federation_, .role = role, .jurisdiction = has_place ? "DE" : "", .name = name};
  request.client = true;
  request.not_before = now_ - hours(120);
  request.not_after = now_ + hours(120);
  return request;
}

TestParty TestAuthority::Issue(const crypto::CertificateRequest& request) const {
  const auto issued = crypto::Issue(authority_.issuing_key_pem, authority_.issuing_pem, request);
  DOMICILE_CHECK(issued.ok());
  return {issued->key_pem, issued->chain_pem};
}

TestParty TestAuthority::Aggregator() const {
  crypto::CertificateRequest request = Request(crypto::Role::kAggregator, "main");
  request.server = true;
  request.dns_names = {"localhost"};
  request.ip_addresses = {"127.0.0.1", "::1"};
  return Issue(request);
}

TestParty TestAuthority::Site(const std::string& name) const {
  return Issue(Request(crypto::Role::kSite, name));
}

TestParty TestAuthority::Operator(const std::string& name) const {
  return Issue(Request(crypto::Role::kOperator, name));
}

TestParty TestAuthority::ExpiredSite(const std::string& name) const {
  crypto::CertificateRequest request = Request(crypto::Role::kSite, name);
  request.not_after = now_ - hours(1);
  return Issue(request);
}

TestParty TestAuthority::WithNames(const std::string& common_name,
                                   const std::vector<internal::SubjectName>& names,
                                   bool server) const {
  internal::CertificateSpec spec;
  spec.common_name = common_name;
  spec.not_before = now_ - hours(120);
  spec.not_after = now_ + hours(120);
  spec.basic_constraints = "critical,CA:FALSE";
  spec.key_usage = "critical,digitalSignature";
  spec.extended_key_usage = server ? "serverAuth" : "clientAuth";
  spec.names = names;
  const auto issuers = internal::ParseCertificates(authority_.issuing_pem, "issuer");
  const auto issuing_key = internal::ParsePrivateKey(authority_.issuing_key_pem, "key");
  DOMICILE_CHECK(issuers.ok() && issuing_key.ok());
  const internal::Key key = internal::MakeP256Key();
  const auto made =
      internal::MakeCertificate(spec, key.get(), issuers->front().get(), issuing_key->get());
  DOMICILE_CHECK(made.ok());
  return {internal::PrintPem(key.get()), internal::PrintPem(made->get()) + authority_.issuing_pem};
}

std::string TestAuthority::SiteUri(const std::string& name) const {
  return "spiffe://" + federation_ + "/jurisdiction/DE/site/" + name;
}

std::string TestAuthority::AggregatorUri() const {
  return "spiffe://" + federation_ + "/jurisdiction/DE/aggregator/main";
}

}  // namespace domicile::test
