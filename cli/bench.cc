// `domicile bench`: starts the benchmarks, which are programs of their own beside this one. They
// take this process's place, so that their output, progress and exit code are the command's.
#include <cerrno>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"

namespace domicile::cli {

namespace {

struct RoundOptions {
  std::uint64_t parameters = 1'000'000;
  std::uint32_t sites = 3;
  std::uint32_t rounds = 5;
  bool json = false;
  bool keep = false;
};

struct TrainingOptions {
  double seconds = 1;
  std::vector<std::string> models;
  bool json = false;
  std::string device = "cpu";
  std::string products = "float32";
  std::string plugin;
  std::uint32_t batch = 0;
  std::vector<std::string> strategies;
  std::uint32_t replicas = 2;
};

struct PolicyOptions {
  std::uint32_t sites = 100;
  double seconds = 0.3;
  bool json = false;
};

// Returns only if the program could not be started.
Status Become(std::vector<std::string> words, Context& context) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return ErrnoError(error.value(), "finding this program");
  }
  words.front() = (self.parent_path() / words.front()).string();
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  context.out.flush();
  execv(argv[0], argv.data());
  return ErrnoError(errno, "starting `" + words.front() + "`");
}

StatusOr<Exit> BenchRound(const RoundOptions& options, Context& context) {
  std::vector<std::string> words = {
      "domicile-bench-round",        "--params", std::to_string(options.parameters), "--sites",
      std::to_string(options.sites), "--rounds", std::to_string(options.rounds)};
  if (options.json) {
    words.emplace_back("--json");
  }
  if (options.keep) {
    words.emplace_back("--keep");
  }
  return Become(std::move(words), context);
}

StatusOr<Exit> BenchTraining(const TrainingOptions& options, Context& context) {
  std::vector<std::string> words = {"domicile-bench-training",
                                    "--seconds",
                                    PrintDouble(options.seconds),
                                    "--device",
                                    options.device,
                                    "--products",
                                    options.products,
                                    "--batch",
                                    std::to_string(options.batch)};
  if (!options.plugin.empty()) {
    words.insert(words.end(), {"--plugin", options.plugin});
  }
  for (const std::string& model : options.models) {
    words.insert(words.end(), {"--model", model});
  }
  if (!options.strategies.empty()) {
    words.insert(words.end(), {"--replicas", std::to_string(options.replicas)});
  }
  for (const std::string& strategy : options.strategies) {
    words.insert(words.end(), {"--strategy", strategy});
  }
  if (options.json) {
    words.emplace_back("--json");
  }
  return Become(std::move(words), context);
}

StatusOr<Exit> BenchPolicy(const PolicyOptions& options, Context& context) {
  std::vector<std::string> words = {"domicile-bench-policy", "--sites",
                                    std::to_string(options.sites), "--seconds",
                                    PrintDouble(options.seconds)};
  if (options.json) {
    words.emplace_back("--json");
  }
  return Become(std::move(words), context);
}

void AddBenchTraining(CLI::App& bench, Context& context) {
  auto training = std::make_shared<TrainingOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(bench, "training", "How fast a site trains, beside the matrix product",
                 "domicile bench training --json");
  command->add_option("--seconds", training->seconds, "for each measurement")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  command
      ->add_option("--model", training->models,
                   "logistic, mlp, cnn or minilm; repeatable; default: all of them")
      ->check(CLI::IsMember({"logistic", "mlp", "cnn", "minilm"}));
  command->add_option("--batch", training->batch, "examples of a step; 0: each model's own")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--device", training->device, "cpu (on 1 and 2 threads), or cuda: one GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command
      ->add_option("--products", training->products, "what matrix products of a GPU compute with")
      ->check(CLI::IsMember({"float32", "tensor_float32", "bfloat16", "float16"}))
      ->capture_default_str();
  command
      ->add_option("--strategy", training->strategies,
                   "measure training with it, from a shuffled pipeline on CPUs; repeatable")
      ->check(CLI::IsMember({"one_device", "mirrored", "central_storage", "parameter_server",
                             "multi_worker_mirrored"}));
  command->add_option("--replicas", training->replicas, "of a strategy; threads for one_device")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--plugin", training->plugin,
                      "path of the GPU plug-in, where it is not beside this program");
  command->add_flag("--json", training->json, "print the figures as JSON");
  OnRun(*command, context, [training, &context]() { return BenchTraining(*training, context); });
}

void AddBenchPolicy(CLI::App& bench, Context& context) {
  auto policy = std::make_shared<PolicyOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(bench, "policy", "What a decision, a meet and the question of reach cost",
                 "domicile bench policy --json");
  command->add_option("--sites", policy->sites, "each with a policy of its own")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--seconds", policy->seconds, "for each measurement")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  command->add_flag("--json", policy->json, "print the figures as JSON");
  OnRun(*command, context, [policy, &context]() { return BenchPolicy(*policy, context); });
}

}  // namespace

void AddBench(CLI::App& program, Context& context) {
  CLI::App* const bench =
      AddGroup(program, "bench", "Measure this machine, beside the limits it sets");

  auto round = std::make_shared<RoundOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const round_command =
      AddCommand(*bench, "round", "What a round costs: real programs on loopback, no training",
                 "domicile bench round --params 1000000 --sites 4 --rounds 5");
  round_command->add_option("--params", round->parameters, "float32 numbers of the model")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{200'000'000}))
      ->capture_default_str();
  round_command->add_option("--sites", round->sites, "3 is the least a policy accepts")
      ->check(CLI::Range(3, 16))
      ->capture_default_str();
  round_command->add_option("--rounds", round->rounds, "after the one that warms up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  round_command->add_flag("--json", round->json, "print the figures as JSON");
  round_command->add_flag("--keep", round->keep, "keep the federation's folder, and say where");
  OnRun(*round_command, context, [round, &context]() { return BenchRound(*round, context); });

  AddBenchPolicy(*bench, context);
  AddBenchTraining(*bench, context);
}

}  // namespace domicile::cli
