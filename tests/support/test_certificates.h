// Certificates for tests: good ones, and ones with one thing wrong.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "crypto/certificate.h"
#include "crypto/internal/x509.h"

namespace domicile::test {

// Key and chain of one party, PEM.
struct TestParty {
  std::string key_pem;
  std::string chain_pem;
};

// One federation's authority, valid around the real time (TLS libraries ask the system's clock).
// Immutable.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& federation);

  const std::string& RootPem() const { return authority_.root_pem; }

  // Valid as `localhost`, 127.0.0.1 and ::1.
  TestParty Aggregator() const;
  TestParty Site(const std::string& name) const;
  TestParty Operator(const std::string& name) const;
  // A site's certificate that ended an hour ago.
  TestParty ExpiredSite(const std::string& name) const;
  // A server or client certificate with exactly these names.
  TestParty WithNames(const std::string& common_name,
                      const std::vector<crypto::internal::SubjectName>& names, bool server) const;

  std::string SiteUri(const std::string& name) const;
  std::string AggregatorUri() const;

 private:
  TestParty Issue(const crypto::CertificateRequest& request) const;
  crypto::CertificateRequest Request(crypto::Role role, const std::string& name) const;

  std::string federation_;
  WallTime now_;
  crypto::Authority authority_;
};

}  // namespace domicile::test
