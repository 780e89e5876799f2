#include "aggregator/coordinator/config.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/toml.h"

namespace domicile::aggregator {

contracts::PolicyKeeperOptions PolicyFilesOf(const Config& config, std::string jurisdiction) {
  const contracts::PolicySigners& signers = config.policy_signers;
  return {.files = {{"facts", policy::PolicySource::kNone, config.legal_facts, signers.facts},
                    {"federation", policy::PolicySource::kFederation, config.federation_policy,
                     signers.federation},
                    {"aggregator", policy::PolicySource::kAggregator, config.aggregator_policy,
                     signers.aggregator}},
          .are_unsigned = signers.none,
          .jurisdiction = std::move(jurisdiction)};
}

StatusOr<Config> ParseConfig(std::string_view toml, std::string_view file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(toml, file));
  TomlTable root = document.Root();
  TomlTable main = root.Table("aggregator");
  const auto path = [&](std::string_view key) { return ResolveBeside(file, main.String(key)); };
  Config config;
  config.identity = path("identity");
  config.state = path("state");
  config.listen = main.String("listen");
  config.federation_policy = path("federation_policy");
  config.aggregator_policy = path("aggregator_policy");
  config.legal_facts = path("legal_facts");
  for (const std::string& model :
       main.TryStrings("pretrained").value_or(std::vector<std::string>{})) {
    config.pretrained.push_back(ResolveBeside(file, model));
  }
  constexpr std::array<std::string_view, 3> kSources = {"federation", "aggregator", "facts"};
  config.policy_signers = contracts::ReadPolicySigners(root, main, kSources);
  if (std::optional<TomlTable> limits = root.TryTable("limits")) {
    const auto number = [&](std::string_view key, std::int64_t low, std::int64_t high,
                            std::int64_t otherwise) {
      return limits->TryInt(key, low, high).value_or(otherwise);
    };
    config.update_bytes = static_cast<std::uint64_t>(
        number("update_bytes", 1024, std::int64_t{1} << 40U, std::int64_t{1} << 30U));
    config.upload_slots = static_cast<std::uint32_t>(number("upload_slots", 2, 1024, 4));
    config.window_bytes =
        static_cast<std::int32_t>(number("window_bytes", 65536, 64 << 20U, 4 << 20U));
  }
  RETURN_IF_ERROR(document.Finish());
  return config;
}

}  // namespace domicile::aggregator
