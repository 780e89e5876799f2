// Property: what ParseJson accepts, PrintJson writes in the one canonical form, which reads back to
// the same value.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<Json> first = ParseJson(text);
  if (first.ok()) {
    const std::string printed = PrintJson(*first);
    const StatusOr<Json> second = ParseCanonicalJson(printed);
    DOMICILE_CHECK(second.ok() && *second == *first);
  }
  const StatusOr<Json> canonical = ParseCanonicalJson(text);
  DOMICILE_CHECK(!canonical.ok() || (first.ok() && PrintJson(*canonical) == text));
  return 0;
}
