// How fast a site trains: examples a second through whole optimizer steps, and the rate of the
// matrix product that bounds it.
//
// usage: domicile-bench-training [SECONDS]      SECONDS a measurement, default 1; prints JSON
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

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

std::string Rounded(double value) { return PrintDouble(std::round(value * 10) / 10); }

Status Run(double seconds) {
  RETURN_IF_ERROR(models::CheckCpu());
  const Workload workloads[] = {
      {"logistic", {.num_inputs = 13, .hidden = {}, .num_outputs = 1}, 256},
      {"mlp",
       {.num_inputs = 784,
        .hidden = {256, 128},
        .activation = models::Activation::kRelu,
        .num_outputs = 10},
       128}};
  std::string json = "{\"isa\":\"" + std::string(models::KernelIsa()) + "\"";
  for (const Workload& workload : workloads) {
    ASSIGN_OR_RETURN(const double one, ExamplesPerSecond(workload, 1, seconds));
    ASSIGN_OR_RETURN(const double two, ExamplesPerSecond(workload, 2, seconds));
    json += ",\"" + std::string(workload.name) + "\":{\"batch\":" + std::to_string(workload.batch) +
            ",\"examples_per_second_1_thread\":" + Rounded(one) +
            ",\"examples_per_second_2_threads\":" + Rounded(two) + "}";
  }
  json += ",\"gemm_gflops\":" + Rounded(models::MeasureGemmGflops(512, seconds)) + "}";
  std::printf("%s\n", json.c_str());
  return OkStatus();
}

}  // namespace
}  // namespace domicile

int main(int argc, char** argv) {
  const auto seconds = argc == 2 ? domicile::ParseDouble(argv[1]) : 1.0;
  if (argc > 2 || !seconds.ok() || !(*seconds > 0)) {
    std::fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]);
    return 2;
  }
  const domicile::Status status = domicile::Run(*seconds);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", domicile::ToString(status).c_str());
    return 3;
  }
  return 0;
}
