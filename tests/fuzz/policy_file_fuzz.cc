// Property: an accepted policy is printed as a file that is read as the same policy, and a site
// policy and its statement are the same policy to the other end.
#include <cstddef>
#include <cstdint>
#include <string>

#include "policy/engine/meet.h"
#include "policy/language/parse.h"
#include "policy/language/print.h"
#include "policy/language/statement.h"

namespace {

void CheckPrint(const domicile::policy::Policy& policy) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string text = policy::PrintPolicy(policy);
  const auto read = policy::ParsePolicy(text, "printed.toml", policy.source);
  DOMICILE_CHECK(read.ok());
  DOMICILE_CHECK(policy::WithoutLines(*read) == policy::WithoutLines(policy));
  DOMICILE_CHECK(policy::PrintPolicy(*read) == text);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto site = policy::ParsePolicy(text, "site.toml", policy::PolicySource::kSite);
  if (site.ok()) {
    CheckPrint(*site);
    const std::string statement = policy::StatementText(*site);
    const auto read = policy::ParseStatement(statement);
    DOMICILE_CHECK(read.ok() && policy::StatementText(*read) == statement);
    const policy::Facts none;
    DOMICILE_CHECK(policy::FromPolicy(*read, none).Text() ==
                   policy::FromPolicy(*site, none).Text());
  }
  const auto federation = policy::ParsePolicy(text, "f.toml", policy::PolicySource::kFederation);
  if (federation.ok()) {
    CheckPrint(*federation);
    DOMICILE_CHECK(!federation->site && federation->datasets.empty());
    DOMICILE_CHECK(federation->identity.expires > federation->identity.not_before);
  }
  return 0;
}
