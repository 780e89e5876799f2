// agent.toml (docs/formats/daemon-config.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "contracts/approval.h"
#include "contracts/policy_signature.h"

namespace domicile::site_agent {

// Paths are resolved beside the file.
struct AgentConfig {
  std::string identity;
  std::string state;
  std::string aggregator;  // HOST:PORT
  std::string trainer_socket;
  std::string policy;
  std::string federation_policy;
  std::string legal_facts;
  std::string grants;
  std::string requests;
  contracts::PolicySigners policy_signers;
  contracts::ApprovalRules approval;  // who may approve jobs at this site
  std::int32_t window_bytes = 4 << 20;
};

// Errors: kInvalidArgument with file, line and column.
StatusOr<AgentConfig> ParseAgentConfig(std::string_view toml, std::string_view file);

}  // namespace domicile::site_agent
