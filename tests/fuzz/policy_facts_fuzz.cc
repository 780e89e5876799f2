// Property: accepted facts print as canonical JSON, and no fact holds once the file has expired.
#include <cstddef>
#include <cstdint>
#include <string>

#include "policy/language/facts.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts = policy::ParseFacts(text, "facts.toml");
  if (!facts.ok()) {
    return 0;
  }
  DOMICILE_CHECK(ParseCanonicalJson(PrintJson(facts->ToJson())).ok());
  const auto area = policy::Area::Parse("EU");
  const auto place = policy::Jurisdiction::Parse("DE");
  DOMICILE_CHECK(policy::Covers(*area, *place, *facts, facts->expires, nullptr) ==
                 policy::Cover::kUnknown);
  return 0;
}
