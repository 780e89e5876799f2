// How fast a site trains: examples a second through whole optimizer steps, and the rate of the
// matrix product that bounds it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
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

constexpr std::size_t kTokens = 128;  // of a sequence

struct Workload {
  const char* name;
  models::ModelSpec model;
  models::OptimizerSpec optimizer;
  std::size_t batch;
};

// Whole sequences for an encoder, else rows of numbers.
class Batch {
 public:
  explicit Batch(const Workload& workload)
      : inputs_({workload.batch, models::NumInputs(workload.model)}) {
    SeededRandom random(1);
    for (float& value : inputs_.Values()) {
      value = static_cast<float>(static_cast<double>(random.Below(2001)) / 1000 - 1);
    }
    const std::size_t outputs = models::NumOutputs(workload.model);
    for (std::size_t row = 0; row < workload.batch; ++row) {
      labels_.push_back(static_cast<std::uint32_t>(random.Below(outputs == 1 ? 2 : outputs)));
    }
    view_.labels = labels_;
    if (const auto* encoder = std::get_if<models::EncoderSpec>(&workload.model)) {
      for (std::size_t token = 0; token < workload.batch * kTokens; ++token) {
        ids_.push_back(static_cast<std::uint32_t>(random.Below(encoder->vocabulary)));
      }
      view_.tokens = {.ids = ids_, .types = {}, .mask = {}, .length = kTokens};
    } else {
      view_.inputs = std::as_const(inputs_).AsMatrix();
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  const models::BatchView& View() const { return view_; }

 private:
  models::Tensor inputs_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> ids_;
  models::BatchView view_;
};

StatusOr<double> ExamplesPerSecond(const Workload& workload, std::span<const float> initial,
                                   std::size_t threads, double seconds) {
  const Batch batch(workload);
  models::TrainingSpec training;
  training.model = workload.model;
  training.optimizer = workload.optimizer;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<models::Strategy> strategy,
      models::MakeStrategy(
          {.kind = models::StrategyKind::kOneDevice, .threads = threads, .replicas = 1}, training,
          initial));
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
      .StepFlops(std::holds_alternative<models::EncoderSpec>(model) ? kTokens : 1);
}

const models::OptimizerSpec kSgd = {
    .kind = models::OptimizerKind::kSgd, .learning_rate = 0.01, .momentum = 0.9};

std::vector<Workload> Workloads() {
  models::EncoderSpec minilm = models::MiniLmSpec();
  minilm.dropout = 0.1F;
  minilm.pooling = models::Pooling::kFirst;
  minilm.num_outputs = 2;
  return {{"logistic", models::NetworkSpec{.num_inputs = 13, .hidden = {}, .num_outputs = 1}, kSgd,
           256},
          {"mlp",
           models::NetworkSpec{.num_inputs = 784,
                               .hidden = {256, 128},
                               .activation = models::Activation::kRelu,
                               .num_outputs = 10},
           kSgd, 128},
          {"cnn",
           models::ConvNetSpec{.channels = 1,
                               .height = 28,
                               .width = 28,
                               .blocks = {{.filters = 32, .kernel = 3, .pool_window = 2},
                                          {.filters = 64, .kernel = 3, .pool_window = 2}},
                               .hidden = {128},
                               .num_outputs = 10},
           kSgd, 64},
          {"minilm",
           minilm,
           {.kind = models::OptimizerKind::kAdamW, .learning_rate = 2e-5, .weight_decay = 0.01},
           16}};
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

Status Run(double seconds, const std::vector<std::string>& names, bool json) {
  RETURN_IF_ERROR(models::CheckCpu());
  Say("matrix product");
  const double gflops = models::MeasureGemmGflops(512, seconds);
  std::vector<Result> results;
  for (const Workload& workload : Workloads()) {
    if (!names.empty() && std::find(names.begin(), names.end(), workload.name) == names.end()) {
      continue;
    }
    Result& result = results.emplace_back(
        Result{.name = workload.name, .batch = workload.batch, .one = {}, .two = {}});
    const std::vector<float> initial = models::InitialParameters(workload.model, 1);
    const double flops = FlopsOfExample(workload.model);
    for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
      Say(std::string(workload.name) + ", threads: " + std::to_string(threads));
      ASSIGN_OR_RETURN(const double rate, ExamplesPerSecond(workload, initial, threads, seconds));
      (threads == 1 ? result.one : result.two) = {
          .examples_per_second = rate,
          .gemm_share = rate * flops / 1e9 / (gflops * static_cast<double>(threads))};
    }
  }
  Say("");
  json ? PrintJsonFacts(results, gflops) : PrintTable(results, gflops);
  return OkStatus();
}

}  // namespace
}  // namespace domicile

// A measurement that throws has failed, and says so by ending.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  CLI::App app{
      "How fast a site trains: whole optimizer steps of several models, beside the matrix "
      "product.\n\n"
      "Example: domicile bench training --json"};
  double seconds = 1;
  bool json = false;
  std::vector<std::string> names;
  app.add_option("--seconds", seconds, "for each measurement")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--model", names, "these models only; may be repeated")
      ->check(CLI::IsMember({"logistic", "mlp", "cnn", "minilm"}));
  app.add_flag("--json", json, "print the figures as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  const domicile::Status status = domicile::Run(seconds, names, json);
  if (!status.ok()) {
    std::fprintf(stderr, "domicile: %s\n", domicile::ToString(status).c_str());
    return 3;
  }
  return 0;
}
