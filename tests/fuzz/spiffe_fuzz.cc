// Property: a name that parses prints back to the very same bytes, so no two spellings are one
// party.
#include <cstdint>
#include <string_view>

#include "crypto/certificate.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view uri(reinterpret_cast<const char*>(data), size);
  const auto form = domicile::crypto::ParseSpiffeForm(uri);
  const auto name = domicile::crypto::ParseSpiffe(uri);
  DOMICILE_CHECK(form.ok() || !name.ok());
  if (form.ok()) {
    std::string joined = "spiffe://" + form->trust_domain;
    for (const std::string& segment : form->segments) {
      joined += "/" + segment;
    }
    DOMICILE_CHECK(joined == uri);
  }
  if (name.ok()) {
    DOMICILE_CHECK(PrintSpiffe(*name) == uri);
    DOMICILE_CHECK(name->federation == form->trust_domain);
  }
  return 0;
}
