// Property: an accepted description has files, a version, and an empty cell among what is missing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "contracts/dataset.h"
#include "contracts/schema.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<contracts::DatasetDescription> description =
      contracts::ParseDatasetDescription(text, "/data/d.toml");
  if (description.ok()) {
    DOMICILE_CHECK(!description->alias.IsNone() && !description->version.empty());
    DOMICILE_CHECK(!description->files.empty());
    const std::vector<std::string>& missing = description->missing;
    DOMICILE_CHECK(std::find(missing.begin(), missing.end(), "") != missing.end());
  }
  return 0;
}
