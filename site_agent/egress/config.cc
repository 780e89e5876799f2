#include "site_agent/egress/config.h"

#include <optional>

#include "base/file.h"
#include "base/toml.h"

namespace domicile::site_agent {

namespace {

std::vector<Approver> ReadApprovers(TomlTable root) {
  std::vector<Approver> approvers;
  for (TomlTable table : root.Tables("approver")) {
    Approver approver;
    approver.role = policy::FromCode<policy::ApprovalRole>(table.String("role"))
                        .value_or(policy::ApprovalRole::kNone);
    if (approver.role == policy::ApprovalRole::kNone) {
      table.Fail("role", "must be dpo, operator, ciso, ethics_board or data_owner");
    }
    StatusOr<crypto::NoteVerifier> key = crypto::NoteVerifier::Parse(table.String("key"));
    if (key.ok()) {
      approver.key = *std::move(key);
    } else {
      table.Merge("key", key.status());
    }
    for (const Approver& other : approvers) {
      if (other.key == approver.key) {
        table.Fail("key", "is there twice: one person is one approver");
      }
    }
    approvers.push_back(std::move(approver));
  }
  return approvers;
}

}  // namespace

std::vector<crypto::NoteVerifier> AgentConfig::ApproverKeys() const {
  std::vector<crypto::NoteVerifier> keys;
  keys.reserve(approvers.size());
  for (const Approver& approver : approvers) {
    keys.push_back(approver.key);
  }
  return keys;
}

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
  config.approvers = ReadApprovers(root);
  config.approvals = static_cast<std::uint32_t>(main.TryInt("approvals", 1, 100).value_or(1));
  if (config.approvers.size() < config.approvals) {
    main.Fail("approvals", "asks for " + std::to_string(config.approvals) + " persons, but only " +
                               std::to_string(config.approvers.size()) + " [[approver]] are named");
  }
  if (std::optional<TomlTable> limits = root.TryTable("limits")) {
    config.window_bytes = static_cast<std::int32_t>(
        limits->TryInt("window_bytes", 65536, 64 << 20U).value_or(4 << 20U));
  }
  RETURN_IF_ERROR(document.Finish());
  return config;
}

}  // namespace domicile::site_agent
