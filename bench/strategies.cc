#include "bench/strategies.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "models/data/feed.h"
#include "models/data/pipeline.h"
#include "models/initial.h"

namespace domicile {
namespace {

using models::StrategyKind;
using Indices = std::vector<std::size_t>;

const struct {
  const char* name;
  StrategyKind kind;
} kStrategies[] = {{"one_device", StrategyKind::kOneDevice},
                   {"mirrored", StrategyKind::kMirrored},
                   {"central_storage", StrategyKind::kCentralStorage},
                   {"parameter_server", StrategyKind::kParameterServer}};

constexpr std::size_t kBatches = 16;  // of made-up data
constexpr double kMegabyte = 1e6;

std::string Rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return PrintDouble(std::round(value * scale) / scale);
}

}  // namespace

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const auto& strategy : kStrategies) {
    names.emplace_back(strategy.name);
  }
  names.emplace_back(kClusterStrategy);
  return names;
}

StatusOr<models::StrategySpec> StrategyOfName(const std::string& name, std::size_t replicas) {
  for (const auto& strategy : kStrategies) {
    if (strategy.name == name) {
      models::StrategySpec spec;
      spec.kind = strategy.kind;
      // As many threads altogether, however they are used.
      spec.threads = strategy.kind == StrategyKind::kMirrored ? 1 : replicas;
      spec.replicas = strategy.kind == StrategyKind::kOneDevice ? 1 : replicas;
      spec.servers = replicas;
      spec.staleness = 2 * replicas;
      return spec;
    }
  }
  return Error(StatusCode::kInvalidArgument, "there is no strategy `" + name + "`");
}

StatusOr<StrategyRate> MeasureStrategy(const Workload& workload, const std::string& strategy,
                                       std::size_t replicas, double seconds) {
  ASSIGN_OR_RETURN(const models::StrategySpec spec, StrategyOfName(strategy, replicas));
  models::TrainingSpec training;
  training.model = workload.model;
  training.optimizer = workload.optimizer;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<models::Strategy> trained,
      models::MakeStrategy(spec, training, models::InitialParameters(workload.model, 1)));
  const SystemClock clock;
  const Examples all(workload, kBatches * workload.batch);
  const std::size_t rows = kBatches * workload.batch;
  const std::function<Examples(const Indices&)> gather = [&all](const Indices& indices) {
    return Examples(all, indices);
  };
  const std::function<std::uint64_t(const Examples&)> bytes = [](const Examples& examples) {
    return examples.Bytes();
  };
  const auto feed =
      models::Feed(models::Repeat(models::Batch(models::Shuffle(models::Range(rows), 1, rows),
                                                workload.batch, models::LastBatch::kKeep)),
                   gather, bytes, clock);

  const auto step = [&]() -> Status {
    const std::optional<Examples> batch = feed->Next();
    DOMICILE_CHECK(batch.has_value());  // it repeats
    return trained->Step(batch->View()).status();
  };
  RETURN_IF_ERROR(step());  // the first step allocates
  RETURN_IF_ERROR(trained->Finish().status());
  const models::StepReport before = trained->Report();
  const models::FeedReport fed_before = feed->Report();
  const MonotonicTime start = clock.Monotonic();
  double took = 0;
  std::uint64_t steps = 0;
  do {
    RETURN_IF_ERROR(step());
    ++steps;
    took = std::chrono::duration<double>(clock.Monotonic() - start).count();
  } while (took < seconds);
  const std::chrono::nanoseconds waited = feed->Report().waited - fed_before.waited;
  RETURN_IF_ERROR(trained->Finish().status());
  took = std::chrono::duration<double>(clock.Monotonic() - start).count();

  const models::StepReport report = trained->Report();
  StrategyRate rate = {
      .workload = workload.name, .strategy = strategy, .replicas = report.replicas.size()};
  rate.examples_per_second = static_cast<double>(steps * workload.batch) / took;
  rate.stall_share = std::chrono::duration<double>(waited).count() / took;
  rate.greatest_staleness = report.greatest_staleness;
  for (std::size_t i = 0; i < report.replicas.size(); ++i) {
    models::ReplicaReport since = report.replicas[i];
    since.computing -= before.replicas[i].computing;
    since.communicating -= before.replicas[i].communicating;
    rate.communication_share +=
        since.CommunicationShare() / static_cast<double>(report.replicas.size());
    rate.state_mb += static_cast<double>(since.state_bytes) / kMegabyte;
  }
  return rate;
}

void PrintStrategies(const std::vector<StrategyRate>& rates, bool json) {
  if (!json) {
    std::printf(
        "  model      strategy               replicas    examples/s    stall    communication    "
        "exchanges    state MB    staleness\n");
    for (const StrategyRate& rate : rates) {
      std::printf("  %-10s %-21s %9zu %13.1f %6.1f %% %14.1f %% %10.1f %% %11.1f %12llu\n",
                  rate.workload.c_str(), rate.strategy.c_str(), rate.replicas,
                  rate.examples_per_second, 100 * rate.stall_share, 100 * rate.communication_share,
                  100 * rate.exchange_share, rate.state_mb,
                  static_cast<unsigned long long>(rate.greatest_staleness));
    }
    return;
  }
  std::string text;
  for (const StrategyRate& rate : rates) {
    text += (text.empty() ? "" : ",") + ("{\"model\":\"" + rate.workload) + "\",\"strategy\":\"" +
            rate.strategy + "\",\"replicas\":" + std::to_string(rate.replicas) +
            ",\"examples_per_second\":" + Rounded(rate.examples_per_second, 1) +
            ",\"stall_share\":" + Rounded(rate.stall_share, 5) +
            ",\"communication_share\":" + Rounded(rate.communication_share, 5) +
            ",\"exchange_share\":" + Rounded(rate.exchange_share, 5) +
            ",\"state_mb\":" + Rounded(rate.state_mb, 3) +
            ",\"greatest_staleness\":" + std::to_string(rate.greatest_staleness) + "}";
  }
  std::printf("{\"strategies\":[%s]}\n", text.c_str());
}

}  // namespace domicile
