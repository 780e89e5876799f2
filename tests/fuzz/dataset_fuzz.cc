// Property: an accepted description has something to read, a version, an empty cell among what is
// missing, and one description for each column, of jobs and of the table.
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
    DOMICILE_CHECK(!contracts::DataPaths(*description).empty());
    for (const contracts::ColumnDescription& column : description->columns) {
      DOMICILE_CHECK(description->FindColumn(column.name) == &column);
      DOMICILE_CHECK(description->FindLocalColumn(column.Local()) == &column);
      DOMICILE_CHECK(column.scale != 0);
    }
    const std::vector<std::string>& missing = description->missing;
    DOMICILE_CHECK(std::find(missing.begin(), missing.end(), "") != missing.end());
  }
  return 0;
}
