#include "site_agent/egress/config.h"

#include <array>
#include <optional>

#include "base/file.h"
#include "base/toml.h"

namespace domicile::site_agent {

StatusOr<AgentConfig> ParseAgentConfig(std::string_view toml, std::string_view file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(toml, file));
  TomlTable root = document.Root();
  TomlTable main = root.Table("agent");
  const auto path = [&](std::string_view key) { return ResolveBeside(file, main.String(key)); };
  AgentConfig config;
  config.identity = path("identity");
  config.state = path("state");
  config.aggregator = main.String("aggregator");
  config.trainer_socket = path("trainer_socket");
  config.policy = path("policy");
  config.federation_policy = path("federation_policy");
  config.legal_facts = path("legal_facts");
  config.grants = path("grants");
  config.requests = path("requests");
  constexpr std::array<std::string_view, 3> kSources = {"site", "federation", "facts"};
  config.policy_signers = contracts::ReadPolicySigners(root, main, kSources);
  config.approval = contracts::ReadApprovalRules(root, main);
  if (std::optional<TomlTable> limits = root.TryTable("limits")) {
    config.window_bytes = static_cast<std::int32_t>(
        limits->TryInt("window_bytes", 65536, 64 << 20U).value_or(4 << 20U));
  }
  RETURN_IF_ERROR(document.Finish());
  return config;
}

}  // namespace domicile::site_agent
