// Training over a whole pipeline with one strategy: its rate, and where the time goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/workloads.h"
#include "models/strategy/strategy.h"

namespace domicile {

struct StrategyRate {
  std::string workload;
  std::string strategy;
  std::size_t replicas = 1;
  double examples_per_second = 0;
  double stall_share = 0;          // of wall time, waiting for the input pipeline
  double communication_share = 0;  // of the replicas' time held up by it, mean over replicas
  double exchange_share = 0;  // cluster only: of the workers' time, exchanges behind it included
  double state_mb = 0;        // parameters, gradients, moments of all replicas together
  std::uint64_t greatest_staleness = 0;
};

inline constexpr const char* kClusterStrategy = "multi_worker_mirrored";

// one_device, mirrored, central_storage, parameter_server, multi_worker_mirrored.
std::vector<std::string> StrategyNames();
// Errors: kInvalidArgument: none of those names, or multi_worker_mirrored (cluster_rate.h).
StatusOr<models::StrategySpec> StrategyOfName(const std::string& name, std::size_t replicas);

// Steps for at least that long, with shuffled batches gathered ahead by a Feed of one thread.
StatusOr<StrategyRate> MeasureStrategy(const Workload& workload, const std::string& strategy,
                                       std::size_t replicas, double seconds);

void PrintStrategies(const std::vector<StrategyRate>& rates, bool json);

}  // namespace domicile
