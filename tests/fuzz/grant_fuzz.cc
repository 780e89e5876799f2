// Property: an accepted grant is the text it prints, so that a signature over one is over the
// other.
#include <cstddef>
#include <cstdint>
#include <string>

#include "contracts/grant.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<contracts::GrantBody> body = contracts::GrantBodyFromText(text);
  DOMICILE_CHECK(!body.ok() || contracts::GrantText(*body) == text);
  return 0;
}
