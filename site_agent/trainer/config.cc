#include "site_agent/trainer/config.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/toml.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kMaxDescriptionBytes = std::uint64_t{1} << 20U;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40U;
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxSilenceSeconds = 3600;
constexpr std::int64_t kUsualSilenceSeconds = 30;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 31U;

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

std::size_t OneThreadPerCore() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
}

struct StrategyWord {
  std::string_view word;
  models::StrategyKind kind;
  bool has_replicas;
};

constexpr std::array<StrategyWord, 5> kStrategies = {
    {{"one_device", models::StrategyKind::kOneDevice, false},
     {"mirrored", models::StrategyKind::kMirrored, true},
     {"central_storage", models::StrategyKind::kCentralStorage, true},
     {"parameter_server", models::StrategyKind::kParameterServer, true},
     {"multi_worker_mirrored", models::StrategyKind::kMultiWorkerMirrored, false}}};

void ReadStrategy(TomlTable& table, std::string_view file, TrainerConfig& config) {
  const std::string word = table.TryString("strategy").value_or("one_device");
  const auto* const found =
      std::find_if(kStrategies.begin(), kStrategies.end(),
                   [&word](const StrategyWord& strategy) { return strategy.word == word; });
  if (found == kStrategies.end()) {
    table.Fail("strategy",
               "must be \"one_device\", \"mirrored\", \"central_storage\", \"parameter_server\" or "
               "\"multi_worker_mirrored\"");
    return;
  }
  config.strategy.kind = found->kind;
  const bool has_workers = found->kind == models::StrategyKind::kMultiWorkerMirrored;
  const auto cluster = table.TryString("cluster");
  if (cluster.has_value() != has_workers) {
    table.Fail("cluster", "goes with strategy \"multi_worker_mirrored\", and only with it");
  } else if (cluster) {
    config.cluster = ResolveBeside(file, *cluster);
  }
  const auto replicas = table.TryInt("replicas", 1, kMaxThreads);
  if (replicas && !found->has_replicas) {
    table.Fail("replicas",
               "belongs to strategy \"mirrored\", \"central_storage\" or \"parameter_server\"");
  }
  config.strategy.replicas =
      found->has_replicas ? static_cast<std::size_t>(replicas.value_or(2)) : 1;
  const auto silence = table.TryInt("silence_seconds", 1, kMaxSilenceSeconds);
  if (silence && !found->has_replicas) {
    table.Fail("silence_seconds", "goes with `replicas`");
  }
  config.strategy.patience = std::chrono::seconds(silence.value_or(kUsualSilenceSeconds));
  if (found->kind == models::StrategyKind::kParameterServer) {
    config.strategy.servers =
        static_cast<std::size_t>(table.TryInt("servers", 1, kMaxThreads).value_or(1));
    config.strategy.staleness =
        static_cast<std::uint64_t>(table.TryInt("staleness", 0, kMaxThreads).value_or(0));
  }
}

void ReadPrecision(TomlTable& table, TrainerConfig& config) {
  const std::string word = table.TryString("precision").value_or("float32");
  if (word == "float32") {
    config.precision = models::Precision::kFloat32;
  } else if (word == "bfloat16") {
    config.precision = models::Precision::kBfloat16;
  } else if (word == "float16") {
    config.precision = models::Precision::kFloat16;
  } else {
    table.Fail("precision", "must be \"float32\", \"bfloat16\" or \"float16\"");
  }
}

models::cuda::Products ProductsOf(models::Precision precision) {
  switch (precision) {
    case models::Precision::kFloat32:
      break;
    case models::Precision::kBfloat16:
      return models::cuda::Products::kBfloat16;
    case models::Precision::kFloat16:
      return models::cuda::Products::kFloat16;
  }
  return models::cuda::Products::kFloat32;
}

// After the precision: a GPU's products have it in hardware.
void ReadDevice(TomlTable& table, std::string_view file, TrainerConfig& config) {
  const std::string device = table.TryString("device").value_or("cpu");
  const auto first = table.TryInt("first_gpu", 0, kMaxThreads);
  const auto plugin = table.TryString("gpu_plugin");
  if (device == "cuda") {
    config.gpu = models::CudaSpec{.library = plugin ? ResolveBeside(file, *plugin) : "",
                                  .ordinal = static_cast<int>(first.value_or(0)),
                                  .products = ProductsOf(config.precision)};
    config.strategy.make_device = models::CudaDevices(*config.gpu);
  } else if (device != "cpu") {
    table.Fail("device", "must be \"cpu\" or \"cuda\"");
  } else if (first || plugin) {
    table.Fail(first ? "first_gpu" : "gpu_plugin", "belongs to device \"cuda\"");
  }
}

std::vector<std::string> ReadPaths(TomlTable& table, std::string_view key, std::string_view file) {
  std::vector<std::string> paths;
  for (const std::string& path : table.TryStrings(key).value_or(std::vector<std::string>{})) {
    paths.push_back(ResolveBeside(file, path));
  }
  return paths;
}

void ReadCompute(TomlTable table, std::string_view file, TrainerConfig& config) {
  ReadStrategy(table, file, config);
  const auto threads =
      static_cast<std::size_t>(table.TryInt("threads", 0, kMaxThreads).value_or(0));
  config.strategy.threads = threads != 0 ? threads : OneThreadPerCore();
  config.micro_batch =
      static_cast<std::size_t>(table.TryInt("micro_batch", 0, kMaxRows).value_or(0));
  ReadPrecision(table, config);
  if (const auto bytes = table.TryInt("input_memory_bytes", 0, kLargestSize)) {
    config.input_memory_bytes = static_cast<std::uint64_t>(*bytes);
  }
  ReadDevice(table, file, config);
  if (const auto steps = table.TryInt("checkpoint_steps", 0, kMaxRows)) {
    config.checkpoint_steps = static_cast<std::uint64_t>(*steps);
  }
  if (config.checkpoint_steps.value_or(0) != 0 &&
      config.strategy.kind == models::StrategyKind::kParameterServer) {
    table.Fail("checkpoint_steps", "has no use with this strategy; leave it out");
  }
  config.pretrained = ReadPaths(table, "pretrained", file);
  config.vocabularies = ReadPaths(table, "vocabularies", file);
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
    config.strategy.threads = OneThreadPerCore();
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
  for (const std::vector<std::string>* files : {&config.pretrained, &config.vocabularies}) {
    for (const std::string& path : *files) {
      rules.push_back({path, PathAccess::kRead, true});
    }
  }
  if (config.gpu) {
    const std::vector<PathRule> gpu = GpuPaths();
    rules.insert(rules.end(), gpu.begin(), gpu.end());
  }
  for (const contracts::DatasetDescription& description : descriptions) {
    for (const std::string& path : contracts::DataPaths(description)) {
      rules.push_back({path, PathAccess::kRead, true});
    }
  }
  return rules;
}

}  // namespace domicile::site_agent
