// How fast a site trains: examples a second through whole optimizer steps, and the rate of the
// matrix product that bounds it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/text.h"
#include "bench/cluster_rate.h"
#include "bench/strategies.h"
#include "bench/workloads.h"
#include "models/cpu/cpu_device.h"
#include "models/cpu_check.h"
#include "models/cuda_plugin.h"
#include "models/initial.h"
#include "models/strategy/strategy.h"

namespace domicile {
namespace {

using SteadyClock = std::chrono::steady_clock;

StatusOr<double> ExamplesPerSecond(const Workload& workload, std::span<const float> initial,
                                   const models::StrategySpec& spec, double seconds) {
  const Examples batch(workload, workload.batch);
  models::TrainingSpec training;
  training.model = workload.model;
  training.optimizer = workload.optimizer;
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Strategy> strategy,
                   models::MakeStrategy(spec, training, initial));
  RETURN_IF_ERROR(strategy->Step(batch.View()).status());  // the first step allocates

  std::uint64_t steps = 0;
  const auto start = SteadyClock::now();
  double took = 0;
  do {
    RETURN_IF_ERROR(strategy->Step(batch.View()).status());
    ++steps;
    took = std::chrono::duration<double>(SteadyClock::now() - start).count();
  } while (took < seconds);
  return static_cast<double>(steps * workload.batch) / took;
}

double FlopsOfExample(const models::ModelSpec& model) {
  const auto device = models::MakeCpuDevice(1);
  return models::Model(model, *device)
      .StepFlops(std::holds_alternative<models::EncoderSpec>(model) ? kBenchTokens : 1);
}

struct Rate {
  double examples_per_second = 0;
  double gemm_share = 0;  // of the rate of one thread's matrix product, for each thread
};

struct Result {
  const char* name = "";
  std::size_t batch = 0;
  Rate one;
  Rate two;
};

std::string Rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return PrintDouble(std::round(value * scale) / scale);
}

void PrintJsonFacts(const std::vector<Result>& results, double gemm_gflops) {
  std::string json = "{\"isa\":\"" + std::string(models::KernelIsa()) + "\",\"gemm_kernel\":\"" +
                     std::string(models::GemmKernel()) + "\"";
  for (const Result& result : results) {
    json += ",\"" + std::string(result.name) + "\":{\"batch\":" + std::to_string(result.batch) +
            ",\"examples_per_second_1_thread\":" + Rounded(result.one.examples_per_second, 1) +
            ",\"examples_per_second_2_threads\":" + Rounded(result.two.examples_per_second, 1) +
            ",\"gemm_share_1_thread\":" + Rounded(result.one.gemm_share, 5) +
            ",\"gemm_share_2_threads\":" + Rounded(result.two.gemm_share, 5) + "}";
  }
  std::printf("%s,\"gemm_gflops\":%s}\n", json.c_str(), Rounded(gemm_gflops, 1).c_str());
}

void PrintTable(const std::vector<Result>& results, double gemm_gflops) {
  std::printf(
      "matrix product of 512 x 512, one thread, kernels for %s, product %s: %.1f GFLOP/s\n\n",
      std::string(models::KernelIsa()).c_str(), std::string(models::GemmKernel()).c_str(),
      gemm_gflops);
  std::printf(
      "  model       batch    examples/s, 1 thread    2 threads   share of the product's "
      "rate\n");
  for (const Result& result : results) {
    std::printf("  %-10s %6zu %23.1f %12.1f %14.1f %% %8.1f %%\n", result.name, result.batch,
                result.one.examples_per_second, result.two.examples_per_second,
                100 * result.one.gemm_share, 100 * result.two.gemm_share);
  }
}

// On a terminal, what is being measured; nothing elsewhere.
void Say(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) {
    std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  }
}

struct Options {
  double seconds = 1;
  bool json = false;
  std::vector<std::string> names;  // empty: all
  std::string device = "cpu";
  std::size_t batch = 0;  // 0: each model's own
  models::CudaSpec gpu;
  std::vector<std::string> strategies;  // empty: rates of the models, on one and two threads
  std::size_t replicas = 2;

  std::vector<Workload> Chosen() const {
    std::vector<Workload> chosen;
    for (Workload& workload : Workloads()) {
      if (names.empty() || std::find(names.begin(), names.end(), workload.name) != names.end()) {
        workload.batch = batch == 0 ? workload.batch : batch;
        chosen.push_back(std::move(workload));
      }
    }
    return chosen;
  }
};

struct GpuResult {
  const char* name;
  std::size_t batch;
  double examples_per_second;
  double tflops;  // of its matrix products, a second
};

void PrintGpuResults(const std::vector<GpuResult>& results, bool json) {
  if (!json) {
    std::printf("  model       batch    examples/s, GPU    TFLOP/s\n");
  }
  std::string text = "{\"device\":\"cuda\"";
  for (const GpuResult& result : results) {
    if (!json) {
      std::printf("  %-10s %6zu %18.1f %10.3f\n", result.name, result.batch,
                  result.examples_per_second, result.tflops);
    }
    text += ",\"" + std::string(result.name) + "\":{\"batch\":" + std::to_string(result.batch) +
            ",\"examples_per_second\":" + Rounded(result.examples_per_second, 1) +
            ",\"tflops\":" + Rounded(result.tflops, 4) + "}";
  }
  if (json) {
    std::printf("%s}\n", text.c_str());
  }
}

Status RunOnGpu(const Options& options) {
  std::vector<GpuResult> results;
  for (const Workload& workload : options.Chosen()) {
    Say(workload.name);
    models::StrategySpec spec;
    spec.make_device = models::CudaDevices(options.gpu);
    ASSIGN_OR_RETURN(const double rate,
                     ExamplesPerSecond(workload, models::InitialParameters(workload.model, 1), spec,
                                       options.seconds));
    results.push_back({.name = workload.name,
                       .batch = workload.batch,
                       .examples_per_second = rate,
                       .tflops = rate * FlopsOfExample(workload.model) / 1e12});
  }
  Say("");
  PrintGpuResults(results, options.json);
  return OkStatus();
}

Status RunStrategies(const Options& options) {
  std::vector<StrategyRate> rates;
  for (const Workload& workload : options.Chosen()) {
    for (const std::string& strategy : options.strategies) {
      Say(std::string(workload.name) + ", " + strategy);
      ASSIGN_OR_RETURN(
          StrategyRate rate,
          strategy == kClusterStrategy
              ? MeasureCluster(workload, options.replicas, options.seconds)
              : MeasureStrategy(workload, strategy, options.replicas, options.seconds));
      rates.push_back(std::move(rate));
    }
  }
  Say("");
  PrintStrategies(rates, options.json);
  return OkStatus();
}

Status Run(const Options& options) {
  RETURN_IF_ERROR(models::CheckCpu());
  if (!options.strategies.empty()) {
    return RunStrategies(options);
  }
  if (options.device == "cuda") {
    return RunOnGpu(options);
  }
  Say("matrix product");
  const double gflops = models::MeasureGemmGflops(512, options.seconds);
  std::vector<Result> results;
  for (const Workload& workload : options.Chosen()) {
    Result& result = results.emplace_back(
        Result{.name = workload.name, .batch = workload.batch, .one = {}, .two = {}});
    const std::vector<float> initial = models::InitialParameters(workload.model, 1);
    const double flops = FlopsOfExample(workload.model);
    for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
      Say(std::string(workload.name) + ", threads: " + std::to_string(threads));
      ASSIGN_OR_RETURN(const double rate,
                       ExamplesPerSecond(workload, initial, {.threads = threads}, options.seconds));
      (threads == 1 ? result.one : result.two) = {
          .examples_per_second = rate,
          .gemm_share = rate * flops / 1e9 / (gflops * static_cast<double>(threads))};
    }
  }
  Say("");
  options.json ? PrintJsonFacts(results, gflops) : PrintTable(results, gflops);
  return OkStatus();
}

}  // namespace
}  // namespace domicile

// A measurement that throws has failed, and says so by ending.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  using domicile::models::cuda::Products;
  CLI::App app{
      "How fast a site trains: whole optimizer steps of several models, beside the matrix "
      "product.\n\n"
      "Example: domicile bench training --json"};
  domicile::Options options;
  app.add_option("--seconds", options.seconds, "for each measurement")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--model", options.names, "these models only; may be repeated")
      ->check(CLI::IsMember({"logistic", "mlp", "cnn", "minilm"}));
  app.add_flag("--json", options.json, "print the figures as JSON");
  app.add_option("--batch", options.batch, "examples of a step; 0: each model's own")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20U));
  app.add_option("--device", options.device)
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--strategy", options.strategies,
                 "measure training with it, from a shuffled pipeline on CPUs; may be repeated")
      ->check(CLI::IsMember(domicile::StrategyNames()));
  app.add_option("--replicas", options.replicas, "of a strategy; threads for one_device")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--plugin", options.gpu.library, "path of the GPU plug-in");
  app.add_option("--products", options.gpu.products, "what matrix products of a GPU compute with")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Products>{{"float32", Products::kFloat32},
                                          {"tensor_float32", Products::kTensorFloat32},
                                          {"bfloat16", Products::kBfloat16},
                                          {"float16", Products::kFloat16}}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  const domicile::Status status = domicile::Run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "domicile: %s\n", domicile::ToString(status).c_str());
    return 3;
  }
  return 0;
}
