// Property: a roster that is accepted is printed back as the very bytes that were read, and passes
// its own check; so what is signed is what is meant.
#include <cstdint>
#include <string_view>

#include "contracts/roster.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto roster = domicile::contracts::RosterFromText(text);
  if (roster.ok()) {
    DOMICILE_CHECK(domicile::contracts::RosterText(*roster) == text);
    DOMICILE_CHECK(domicile::contracts::CheckRoster(*roster).ok());
    for (const auto& entry : roster->entries) {
      DOMICILE_CHECK(roster->Find(entry.role, entry.name) == &entry);
    }
  }
  return 0;
}
