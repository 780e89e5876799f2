// Property: an accepted cluster has a rank of its own, 2 to 64 workers that differ, and addresses
// that read back as they are written. What follows a line `---` is TF_CONFIG.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "site_agent/cluster/description.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kCut = "\n---\n";
  const std::size_t cut = text.find(kCut);
  std::optional<std::string> tf_config;
  if (cut != std::string_view::npos) {
    tf_config = std::string(text.substr(cut + kCut.size()));
  }
  const auto cluster =
      site_agent::ParseClusterDescription(text.substr(0, cut), "/c/cluster.toml", tf_config);
  if (cluster.ok()) {
    DOMICILE_CHECK(cluster->workers.size() >= 2 &&
                   cluster->workers.size() <= site_agent::kMaxWorkers);
    DOMICILE_CHECK(cluster->rank < cluster->workers.size());
    std::set<std::string> seen;
    for (const site_agent::WorkerAddress& worker : cluster->workers) {
      DOMICILE_CHECK(seen.insert(worker.Text()).second);
      const auto again = site_agent::ParseWorkerAddress(worker.Text());
      DOMICILE_CHECK(again.ok() && *again == worker);
    }
  }
  return 0;
}
