// Properties: nothing that differs from what the root's keys signed is accepted, so an accepted
// chain names one of the corpus's identities; whatever is accepted can be read.
#include <chrono>
#include <cstdint>
#include <string_view>

#include "crypto/certificate.h"

namespace {

// The roots of tests/golden/x509_spiffe_expected.json: test keys, trusted nowhere.
constexpr std::string_view kRoots =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBvzCCAWWgAwIBAgICA+kwCgYIKoZIzj0EAwIwNTEZMBcGA1UECgwQZmVkcmVz\n"
    "IFRFU1QgT05MWTEYMBYGA1UEAwwPZWNkc2EtcDI1NiByb290MCAXDTI0MDEwMTAw\n"
    "MDAwMFoYDzIxMjQwMTAxMDAwMDAwWjA1MRkwFwYDVQQKDBBmZWRyZXMgVEVTVCBP\n"
    "TkxZMRgwFgYDVQQDDA9lY2RzYS1wMjU2IHJvb3QwWTATBgcqhkjOPQIBBggqhkjO\n"
    "PQMBBwNCAAS3CBoKXgW3yevEJY6MPa4B/XRGMTXzT+cxCd2zM5ZrJTtNmnvrORrz\n"
    "zoYCe+fTyrIo1jRwH4q3zyjPEOgTFULWo2MwYTAPBgNVHRMBAf8EBTADAQH/MA4G\n"
    "A1UdDwEB/wQEAwIBBjAdBgNVHQ4EFgQU5zjUkyVwHs3vJYlNkHbjjkoRZGgwHwYD\n"
    "VR0jBBgwFoAU5zjUkyVwHs3vJYlNkHbjjkoRZGgwCgYIKoZIzj0EAwIDSAAwRQIg\n"
    "W/ijbuCp+g1o6g3rvDhnnsmB0HddPX6/8Q5QgQ2g7zoCIQCwiNJ6+5ngm6mmbYum\n"
    "BLRMJhXhc8SPdxhOp+rIF9s75g==\n"
    "-----END CERTIFICATE-----\n"
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBeTCCASugAwIBAgICBBcwBQYDK2VwMDIxGTAXBgNVBAoMEGZlZHJlcyBURVNU\n"
    "IE9OTFkxFTATBgNVBAMMDGVkMjU1MTkgcm9vdDAgFw0yNDAxMDEwMDAwMDBaGA8y\n"
    "MTI0MDEwMTAwMDAwMFowMjEZMBcGA1UECgwQZmVkcmVzIFRFU1QgT05MWTEVMBMG\n"
    "A1UEAwwMZWQyNTUxOSByb290MCowBQYDK2VwAyEAF3ACvFLuP2DfoE+gaMG5s4b7\n"
    "6ZAMSawzu25DJtXocHSjYzBhMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQD\n"
    "AgEGMB0GA1UdDgQWBBRjhHJEuKanJG0q+p3WqO+CKfIKkjAfBgNVHSMEGDAWgBRj\n"
    "hHJEuKanJG0q+p3WqO+CKfIKkjAFBgMrZXADQQCoOs26TlOsE8tmMLuOWyeMRfnk\n"
    "qXGjzSClXlisyUcokVheqSGfoMOTXAasEU47on8atW1NMOfkG8WY/Cdtc+AG\n"
    "-----END CERTIFICATE-----\n";

const domicile::WallTime kVerifyAt{std::chrono::seconds(1906502400)};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pem(reinterpret_cast<const char*>(data), size);
  for (const bool is_server : {false, true}) {
    const auto svid = domicile::crypto::VerifySvid(pem, kRoots,
                                                   {.trust_domain = "fedres.example",
                                                    .is_server = is_server,
                                                    .now = kVerifyAt,
                                                    .crls_pem = {}});
    if (svid.ok()) {
      DOMICILE_CHECK(svid->uri == "spiffe://fedres.example/worker/de/fra-1");
      DOMICILE_CHECK(!svid->key.IsZero() && !svid->serial.empty());
      DOMICILE_CHECK(svid->not_before <= kVerifyAt && kVerifyAt <= svid->not_after);
    } else {
      DOMICILE_CHECK(svid.status().code() == domicile::StatusCode::kUnauthenticated);
    }
  }
  // No name of the corpus is this one.
  DOMICILE_CHECK(!domicile::crypto::CheckHost(pem, "nobody.example").ok());
  if (const auto facts = domicile::crypto::ReadCertificate(pem); facts.ok()) {
    DOMICILE_CHECK(domicile::crypto::ParseSpiffe(PrintSpiffe(facts->spiffe)).ok());
  }
  return 0;
}
