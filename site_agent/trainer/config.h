// trainer.toml (docs/formats/trainer-config.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "contracts/approval.h"
#include "contracts/dataset.h"
#include "models/cuda_plugin.h"
#include "models/strategy/strategy.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/trainer/program.h"

namespace domicile::site_agent {

// Paths are resolved beside the configuration file.
struct TrainerConfig {
  std::string federation;
  SiteId site;
  std::string state;  // folder
  std::string socket;
  unsigned socket_mode = 0600;
  std::vector<std::string> datasets;  // description files
  contracts::ApprovalRules approval;
  std::string denials;  // folder in which `domicile job deny` leaves its word; empty: none
  std::optional<std::string> output;
  std::uint64_t output_bytes = std::uint64_t{16} << 20U;
  models::StrategySpec strategy;
  // Rows of a step that go through the model at once on one replica; 0: as the model's kind asks.
  std::size_t micro_batch = 0;
  models::Precision precision = models::Precision::kFloat32;
  std::uint64_t input_memory_bytes = std::uint64_t{256} << 20U;
  std::optional<models::CudaSpec> gpu;  // of replica 0; none: CPUs. strategy.make_device follows it
  // From one checkpoint of a task to the next; 0: none. Absent: after each epoch.
  std::optional<std::uint64_t> checkpoint_steps;
  // Files that jobs name by their SHA-256 and that are never sent: models and vocabularies.
  std::vector<std::string> pretrained;
  std::vector<std::string> vocabularies;
  policy::SandboxNetwork network = policy::SandboxNetwork::kNone;
  std::optional<std::string> cluster;  // cluster.toml, of several hosts (docs/formats/cluster.md)
  std::uint64_t model_bytes = std::uint64_t{2} << 30U;
  std::optional<ProgramConfig> program;  // trains plans of kind `raw`
};

// Errors: kInvalidArgument, "FILE:LINE:COLUMN: ...".
StatusOr<TrainerConfig> ParseTrainerConfig(std::string_view toml, std::string_view file);
// Also the errors of ReadFile.
StatusOr<TrainerConfig> ReadTrainerConfig(const std::string& path);

// The descriptions a configuration names. Errors: those of reading and parsing; kInvalidArgument
// for two of one alias.
StatusOr<std::vector<contracts::DatasetDescription>> ReadDescriptions(const TrainerConfig& config);

// What the locked trainer may open: data, models, vocabularies and what GPUs need to read, the
// state folder to write.
std::vector<PathRule> TrainerPaths(const TrainerConfig& config,
                                   const std::vector<contracts::DatasetDescription>& descriptions);

}  // namespace domicile::site_agent
