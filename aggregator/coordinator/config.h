// aggregator.toml (docs/formats/daemon-config.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "contracts/in_force/policy_keeper.h"
#include "contracts/policy_signature.h"

namespace domicile::aggregator {

// Paths are absolute or relative to the working directory: already resolved beside the file.
struct Config {
  std::string identity;
  std::string state;
  std::string listen;
  std::string federation_policy;
  std::string aggregator_policy;
  std::string legal_facts;
  contracts::PolicySigners policy_signers;
  std::vector<std::string> pretrained;  // model files that jobs may start from
  std::uint64_t update_bytes = std::uint64_t{1} << 30U;
  std::uint32_t upload_slots = 4;
  std::int32_t window_bytes = 4 << 20;
};

// The three files, whose signatures count, and where this aggregator's certificate places it.
contracts::PolicyKeeperOptions PolicyFilesOf(const Config& config, std::string jurisdiction);

// Errors: kInvalidArgument with file, line and column.
StatusOr<Config> ParseConfig(std::string_view toml, std::string_view file);

}  // namespace domicile::aggregator
