// Property: a document in which nobody asked for anything is fine only if it is empty, and every
// error names the file.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/toml.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  StatusOr<TomlDocument> document = TomlDocument::Parse(text, "f.toml");
  Status status = document.status();
  if (document.ok()) {
    const std::vector<std::string> keys = document->Root().Keys();
    status = document->Finish();
    DOMICILE_CHECK(status.ok() == keys.empty());
    StatusOr<TomlDocument> again = TomlDocument::Parse(text, "f.toml");
    TomlTable root = again->Root();
    for (const std::string& key : keys) {
      // Every key in every way; the first wrong type sticks.
      root.TryString(key);
      root.TryInt(key, 0, 9);
      root.TryDouble(key, -1, 1);
      root.TryTime(key);
      root.TryInts(key, 0, 9);
      root.TryStrings(key);
      root.TryTable(key);
      root.Tables(key);
      DOMICILE_CHECK(root.Has(key));
    }
    DOMICILE_CHECK(again->Finish().ok() == keys.empty());
  }
  DOMICILE_CHECK(status.ok() || Message(status).starts_with("f.toml:"));
  return 0;
}
