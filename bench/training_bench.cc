// How fast a site trains: examples a second through whole optimizer steps, and the rate of the
// matrix product that bounds it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"
#include "models/cpu/cpu_device.h"
#include "models/cpu_check.h"
#include "models/initial.h"
#include "models/strategy/strategy.h"

namespace domicile {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Workload {
  const char* name;
  models::NetworkSpec network;
  std::size_t batch;
};

struct Batch {
  models::Tensor inputs;
  std::vector<std::uint32_t> labels;
};

Batch MakeBatch(const Workload& workload) {
  SeededRandom random(1);
  Batch batch = {models::Tensor({workload.batch, workload.network.num_inputs}), {}};
  for (float& value : batch.inputs.Values()) {
    value = static_cast<float>(static_cast<double>(random.Below(2001)) / 1000 - 1);
  }
  for (std::size_t row = 0; row < workload.batch; ++row) {
    batch.labels.push_back(static_cast<std::uint32_t>(random.Below(workload.network.NumClasses())));
  }
  return batch;
}

StatusOr<double> ExamplesPerSecond(const Workload& workload, std::size_t threads, double seconds) {
  const Batch batch = MakeBatch(workload);
  const models::BatchView view = {std::as_const(batch.inputs).AsMatrix(), batch.labels};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<models::Strategy> strategy,
      models::MakeStrategy(
          {.kind = models::StrategyKind::kOneDevice, .threads = threads, .replicas = 1},
          {workload.network,
           {.kind = models::OptimizerKind::kSgd, .learning_rate = 0.01, .momentum = 0.9},
           0},
          models::InitialParameters(workload.network, 1)));
  RETURN_IF_ERROR(strategy->Step(view).status());  // the first step allocates

  std::uint64_t steps = 0;
  const auto start = SteadyClock::now();
  double took = 0;
  do {
    RETURN_IF_ERROR(strategy->Step(view).status());
    ++steps;
    took = std::chrono::duration<double>(SteadyClock::now() - start).count();
  } while (took < seconds);
  return static_cast<double>(steps * workload.batch) / took;
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

// Multiplications and additions of the matrix products of one example: forward, the gradient of
// every weight, and of every input but the first layer's.
double FlopsOfExample(const models::NetworkSpec& network) {
  double flops = 0;
  std::size_t inputs = network.num_inputs;
  std::vector<std::size_t> widths(network.hidden.begin(), network.hidden.end());
  widths.push_back(network.num_outputs);
  for (std::size_t layer = 0; layer < widths.size(); ++layer) {
    const double product = 2.0 * static_cast<double>(inputs) * static_cast<double>(widths[layer]);
    flops += (layer == 0 ? 2 : 3) * product;
    inputs = widths[layer];
  }
  return flops;
}

std::string Rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return PrintDouble(std::round(value * scale) / scale);
}

void PrintJsonFacts(const std::vector<Result>& results, double gemm_gflops) {
  std::string json = "{\"isa\":\"" + std::string(models::KernelIsa()) + "\"";
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
  std::printf("matrix product of 512 x 512, one thread, %s: %.1f GFLOP/s\n\n",
              std::string(models::KernelIsa()).c_str(), gemm_gflops);
  std::printf(
      "  model       batch    examples/s, 1 thread    2 threads   share of the product's "
      "rate\n");
  for (const Result& result : results) {
    std::printf("  %-10s %6zu %23.0f %12.0f %14.1f %% %8.1f %%\n", result.name, result.batch,
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

Status Run(double seconds, bool json) {
  RETURN_IF_ERROR(models::CheckCpu());
  const Workload workloads[] = {
      {"logistic", {.num_inputs = 13, .hidden = {}, .num_outputs = 1}, 256},
      {"mlp",
       {.num_inputs = 784,
        .hidden = {256, 128},
        .activation = models::Activation::kRelu,
        .num_outputs = 10},
       128}};
  Say("matrix product");
  const double gflops = models::MeasureGemmGflops(512, seconds);
  std::vector<Result> results;
  for (const Workload& workload : workloads) {
    Result& result = results.emplace_back(
        Result{.name = workload.name, .batch = workload.batch, .one = {}, .two = {}});
    for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
      Say(std::string(workload.name) + ", threads: " + std::to_string(threads));
      ASSIGN_OR_RETURN(const double rate, ExamplesPerSecond(workload, threads, seconds));
      (threads == 1 ? result.one : result.two) = {
          .examples_per_second = rate,
          .gemm_share = rate * FlopsOfExample(workload.network) / 1e9 /
                        (gflops * static_cast<double>(threads))};
    }
  }
  Say("");
  json ? PrintJsonFacts(results, gflops) : PrintTable(results, gflops);
  return OkStatus();
}

}  // namespace
}  // namespace domicile

int main(int argc, char** argv) {
  CLI::App app{
      "How fast a site trains: whole optimizer steps of two models, beside the matrix product.\n\n"
      "Example: domicile bench training --json"};
  double seconds = 1;
  bool json = false;
  app.add_option("--seconds", seconds, "for each measurement")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_flag("--json", json, "print the figures as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  const domicile::Status status = domicile::Run(seconds, json);
  if (!status.ok()) {
    std::fprintf(stderr, "domicile: %s\n", domicile::ToString(status).c_str());
    return 3;
  }
  return 0;
}
