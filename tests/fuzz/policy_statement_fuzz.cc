// Property: an accepted statement is exactly the text that its policy prints, and gives an
// effective policy that can be decided under without an answer other than deny where nothing is
// asked.
#include <cstddef>
#include <cstdint>
#include <string>

#include "policy/engine/decide.h"
#include "policy/language/statement.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto site = policy::ParseStatement(text);
  if (!site.ok()) {
    return 0;
  }
  DOMICILE_CHECK(policy::StatementText(*site) == text);
  const policy::Effective effective = policy::FromPolicy(*site, policy::Facts{});
  DOMICILE_CHECK(ParseCanonicalJson(effective.Text()).ok());
  DOMICILE_CHECK(policy::Decide(effective, policy::Transfer{}).result == policy::Result::kDeny);
  return 0;
}
