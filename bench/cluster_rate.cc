#include "bench/cluster_rate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "models/initial.h"
#include "site_agent/cluster/free_ports.h"
#include "site_agent/cluster/group.h"

namespace domicile {
namespace {

using site_agent::ClusterDescription;
using site_agent::ClusterGroup;

constexpr std::size_t kBatches = 4;  // of made-up data

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// What this worker's exchanges take altogether, behind its computing or not.
class TimedGroup final : public models::WorkerGroup {
 public:
  TimedGroup(models::WorkerGroup& group, const Clock& clock) : group_(group), clock_(clock) {}

  std::size_t NumRanks() const override { return group_.NumRanks(); }
  std::size_t Rank() const override { return group_.Rank(); }
  Status AllReduceSum(std::span<float> values) override {
    const MonotonicTime start = clock_.Monotonic();
    Status status = group_.AllReduceSum(values);
    exchanging += clock_.Monotonic() - start;
    return status;
  }
  StatusOr<double> AllReduceSum(double value) override {
    const MonotonicTime start = clock_.Monotonic();
    StatusOr<double> sum = group_.AllReduceSum(value);
    exchanging += clock_.Monotonic() - start;
    return sum;
  }

  std::chrono::nanoseconds exchanging{0};  // to be read between steps

 private:
  models::WorkerGroup& group_;
  const Clock& clock_;
};

// What the workers share.
struct Race {
  Race(const Workload& the_workload, std::size_t workers)
      : workload(the_workload), hosts(workers), examples(the_workload, kBatches * workload.batch) {}

  const Workload& workload;
  std::vector<ClusterDescription> hosts;
  Bytes key = Bytes(crypto::kPskBytes);
  Examples examples;
  SystemClock clock;
  std::promise<std::uint64_t> num_steps;  // set by rank 0 after its first step
};

struct Lap {
  Status status = OkStatus();
  double seconds = 0;
  std::uint64_t steps = 0;
  models::ReplicaReport spent;
  double exchanging = 0;
};

Status RunSteps(Race& race, TimedGroup& group, double seconds,
                const std::shared_future<std::uint64_t>& num_steps, Lap& lap) {
  models::TrainingSpec training;
  training.model = race.workload.model;
  training.optimizer = race.workload.optimizer;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<models::Strategy> strategy,
      models::MakeStrategy({.kind = models::StrategyKind::kMultiWorkerMirrored, .workers = &group},
                           training, models::InitialParameters(race.workload.model, 1)));
  const auto step = [&](std::uint64_t number) {
    const std::size_t first = number % kBatches * race.workload.batch;
    return strategy->Step(race.examples.View().Rows(first, race.workload.batch)).status();
  };
  RETURN_IF_ERROR(step(0));  // the first step allocates
  MonotonicTime start = race.clock.Monotonic();
  RETURN_IF_ERROR(step(1));
  if (group.Rank() == 0) {
    const double one = Seconds(race.clock.Monotonic() - start);
    race.num_steps.set_value(static_cast<std::uint64_t>(std::clamp(seconds / one, 1.0, 1e6)));
  }
  lap.steps = num_steps.get();
  const models::ReplicaReport before = strategy->Report().replicas[0];
  group.exchanging = {};
  start = race.clock.Monotonic();
  for (std::uint64_t number = 0; number < lap.steps; ++number) {
    RETURN_IF_ERROR(step(number));
  }
  lap.seconds = Seconds(race.clock.Monotonic() - start);
  lap.spent = strategy->Report().replicas[0];
  lap.spent.computing -= before.computing;
  lap.spent.communicating -= before.communicating;
  lap.exchanging = Seconds(group.exchanging);
  return OkStatus();
}

Status RunWorker(Race& race, std::size_t rank, double seconds,
                 const std::shared_future<std::uint64_t>& num_steps, Lap& lap) {
  ASSIGN_OR_RETURN(site_agent::ClusterSockets sockets,
                   site_agent::OpenClusterSockets(race.hosts[rank], race.clock));
  const site_agent::ClusterIdentity identity = {"bench.example", *SiteId::Parse("bench"), {}, {}};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ClusterGroup> group,
      ClusterGroup::Join(race.hosts[rank], sockets, race.key, identity, race.clock, {}));
  TimedGroup timed(*group, race.clock);
  return RunSteps(race, timed, seconds, num_steps, lap);
}

}  // namespace

StatusOr<StrategyRate> MeasureCluster(const Workload& workload, std::size_t workers,
                                      double seconds) {
  if (workers < 2) {
    return Error(StatusCode::kInvalidArgument, "a cluster needs at least 2 replicas");
  }
  Race race(workload, workers);
  ASSIGN_OR_RETURN(const std::vector<std::uint16_t> ports, site_agent::FreePorts(workers));
  for (std::size_t rank = 0; rank < workers; ++rank) {
    race.hosts[rank].interface = "lo";
    race.hosts[rank].rank = rank;
    for (const std::uint16_t port : ports) {
      race.hosts[rank].workers.push_back({"127.0.0.1", port});
    }
  }
  SystemRandom random;
  random.Fill(race.key);
  const std::shared_future<std::uint64_t> num_steps = race.num_steps.get_future().share();
  std::vector<Lap> laps(workers);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < workers; ++rank) {
    threads.emplace_back([&race, &laps, num_steps, rank, seconds] {
      laps[rank].status = RunWorker(race, rank, seconds, num_steps, laps[rank]);
      if (rank == 0 && laps[0].steps == 0) {
        race.num_steps.set_value(0);  // it failed before it could say: nobody is to wait
      }
    });
  }
  threads.clear();

  StrategyRate rate = {
      .workload = workload.name, .strategy = kClusterStrategy, .replicas = workers};
  const double share = 1 / static_cast<double>(workers);
  for (const Lap& lap : laps) {
    RETURN_IF_ERROR(lap.status);
    rate.examples_per_second =
        static_cast<double>(laps[0].steps * workload.batch) / laps[0].seconds;
    rate.communication_share += share * lap.spent.CommunicationShare();
    rate.exchange_share += share * lap.exchanging / lap.seconds;
    rate.state_mb += static_cast<double>(lap.spent.state_bytes) / 1e6;
  }
  return rate;
}

}  // namespace domicile
