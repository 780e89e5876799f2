#include "site_agent/trainer/config.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/toml.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kMaxDescriptionBytes = std::uint64_t{1} << 20U;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40U;

void ReadSocketMode(TomlTable& table, TrainerConfig& config) {
  const std::string mode = table.TryString("socket_mode").value_or("0600");
  if (mode != "0600" && mode != "0660") {
    table.Fail("socket_mode", "must be \"0600\" or \"0660\"");
  }
  config.socket_mode = mode == "0660" ? 0660 : 0600;
}

void ReadTrainer(TomlTable& root, std::string_view file, TrainerConfig& config) {
  TomlTable table = root.Table("trainer");
  config.federation = table.String("federation");
  if (config.federation.empty()) {
    table.Fail("federation", "must be the federation's trust domain");
  }
  const StatusOr<SiteId> site = SiteId::Parse(table.String("site"));
  if (site.ok()) {
    config.site = *site;
  } else {
    table.Merge("site", site.status());
  }
  config.state = ResolveBeside(file, table.String("state"));
  config.socket = ResolveBeside(file, table.String("socket"));
  ReadSocketMode(table, config);
  for (const std::string& dataset : table.Strings("datasets")) {
    config.datasets.push_back(ResolveBeside(file, dataset));
  }
  if (config.datasets.empty()) {
    table.Fail("datasets", "must name at least one dataset description");
  }
  config.approval = contracts::ReadApprovalRules(root, table);
  if (const auto denials = table.TryString("denials")) {
    config.denials = ResolveBeside(file, *denials);
  }
  if (const auto output = table.TryString("output")) {
    config.output = ResolveBeside(file, *output);
  }
  if (const auto bytes = table.TryInt("output_bytes", 4096, kLargestSize)) {
    config.output_bytes = static_cast<std::uint64_t>(*bytes);
  }
}

void ReadCompute(TomlTable table, std::string_view file, TrainerConfig& config) {
  const std::string strategy = table.TryString("strategy").value_or("one_device");
  if (strategy != "one_device" && strategy != "mirrored" && strategy != "multi_worker_mirrored") {
    table.Fail("strategy", "must be \"one_device\", \"mirrored\" or \"multi_worker_mirrored\"");
  }
  const bool has_workers = strategy == "multi_worker_mirrored";
  config.strategy.kind = strategy == "mirrored" ? models::StrategyKind::kMirrored
                         : has_workers          ? models::StrategyKind::kMultiWorkerMirrored
                                                : models::StrategyKind::kOneDevice;
  const auto cluster = table.TryString("cluster");
  if (cluster.has_value() != has_workers) {
    table.Fail("cluster", "goes with strategy \"multi_worker_mirrored\", and only with it");
  } else if (cluster) {
    config.cluster = ResolveBeside(file, *cluster);
  }
  const auto threads = static_cast<std::size_t>(table.TryInt("threads", 0, 1024).value_or(0));
  config.strategy.threads =
      threads != 0 ? threads
                   : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 1024);
  const auto replicas = table.TryInt("replicas", 1, 1024);
  if (replicas && strategy != "mirrored") {
    table.Fail("replicas", "belongs to strategy \"mirrored\"");
  }
  config.strategy.replicas =
      strategy == "mirrored" ? static_cast<std::size_t>(replicas.value_or(2)) : 1;
}

// Said twice, on purpose: who asks for several hosts must also open the walls for them.
void ReadSandbox(TomlTable& root, TrainerConfig& config) {
  auto sandbox = root.TryTable("sandbox");
  const std::string network = sandbox ? sandbox->TryString("network").value_or("none") : "none";
  using policy::SandboxNetwork;
  for (const SandboxNetwork known :
       {SandboxNetwork::kNone, SandboxNetwork::kLoopback, SandboxNetwork::kSiteCluster}) {
    if (network == policy::Code(known) &&
        (known == SandboxNetwork::kSiteCluster) == config.cluster.has_value()) {
      config.network = known;
      return;
    }
  }
  const std::string message = config.cluster ? "must be \"site_cluster\" with this strategy"
                                             : "must be \"none\" or \"loopback\"";
  if (sandbox) {
    sandbox->Fail("network", message);
  } else {
    root.Fail("sandbox", "is missing: its `network` " + message);
  }
}

}  // namespace

StatusOr<TrainerConfig> ParseTrainerConfig(std::string_view toml, std::string_view file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(toml, file));
  TomlTable root = document.Root();
  TrainerConfig config;
  ReadTrainer(root, file, config);
  if (auto compute = root.TryTable("compute")) {
    ReadCompute(*std::move(compute), file, config);
  } else {
    config.strategy.threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 1024);
  }
  ReadSandbox(root, config);
  if (auto limits = root.TryTable("limits")) {
    if (const auto bytes = limits->TryInt("model_bytes", 1024, kLargestSize)) {
      config.model_bytes = static_cast<std::uint64_t>(*bytes);
    }
  }
  if (auto program = root.TryTable("program")) {
    config.program = ReadProgram(*std::move(program), file);
    config.program->limits.file_bytes = config.model_bytes;
  }
  RETURN_IF_ERROR(document.Finish());
  return config;
}

StatusOr<TrainerConfig> ReadTrainerConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxDescriptionBytes));
  return ParseTrainerConfig(text, path);
}

StatusOr<std::vector<contracts::DatasetDescription>> ReadDescriptions(const TrainerConfig& config) {
  std::vector<contracts::DatasetDescription> descriptions;
  for (const std::string& path : config.datasets) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxDescriptionBytes));
    ASSIGN_OR_RETURN(contracts::DatasetDescription description,
                     contracts::ParseDatasetDescription(text, path));
    for (const contracts::DatasetDescription& other : descriptions) {
      if (other.alias == description.alias) {
        return Error(StatusCode::kInvalidArgument,
                     "`" + path + "`: another description has the alias `" +
                         description.alias.text() + "` too; an alias names one dataset");
      }
    }
    descriptions.push_back(std::move(description));
  }
  return descriptions;
}

std::vector<PathRule> TrainerPaths(const TrainerConfig& config,
                                   const std::vector<contracts::DatasetDescription>& descriptions) {
  std::vector<PathRule> rules = {{config.state, PathAccess::kWrite, true}};
  if (!config.denials.empty()) {
    rules.push_back({config.denials, PathAccess::kRead, true});
  }
  for (const contracts::DatasetDescription& description : descriptions) {
    for (const std::string& path : contracts::DataPaths(description)) {
      rules.push_back({path, PathAccess::kRead, true});
    }
  }
  return rules;
}

}  // namespace domicile::site_agent
