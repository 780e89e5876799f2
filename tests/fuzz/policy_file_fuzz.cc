// Property: an accepted site policy and its statement are the same policy to the other end, and its
// legal facts have one canonical form.
#include <cstddef>
#include <cstdint>
#include <string>

#include "policy/engine/meet.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto site = policy::ParsePolicy(text, "site.toml", policy::PolicySource::kSite);
  if (site.ok()) {
    const std::string statement = policy::StatementText(*site);
    const auto read = policy::ParseStatement(statement);
    DOMICILE_CHECK(read.ok() && policy::StatementText(*read) == statement);
    const policy::Facts none;
    DOMICILE_CHECK(policy::FromPolicy(*read, none).Text() ==
                   policy::FromPolicy(*site, none).Text());
  }
  const auto federation = policy::ParsePolicy(text, "f.toml", policy::PolicySource::kFederation);
  if (federation.ok()) {
    DOMICILE_CHECK(!federation->site && federation->datasets.empty());
    DOMICILE_CHECK(federation->identity.expires > federation->identity.not_before);
  }
  return 0;
}
