#include "site_agent/cluster/group.h"

#include <array>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"
#include "models/initial.h"
#include "models/strategy/buckets.h"
#include "models/strategy/strategy.h"
#include "site_agent/cluster/free_ports.h"

namespace domicile::site_agent {
namespace {

const Bytes kKey(crypto::kPskBytes, 9);
const ClusterIdentity kIdentity = {"heart.example", *SiteId::Parse("charite"), {}, {}};

std::vector<ClusterDescription> Cluster(std::size_t size) {
  std::vector<ClusterDescription> hosts(size);
  const std::vector<std::uint16_t> ports = FreePorts(size).value();
  for (std::size_t rank = 0; rank < size; ++rank) {
    hosts[rank].interface = "lo";
    hosts[rank].rank = rank;
    hosts[rank].rendezvous = std::chrono::seconds(30);
    hosts[rank].silence = std::chrono::seconds(20);
    for (const std::uint16_t port : ports) {
      hosts[rank].workers.push_back({"127.0.0.1", port});
    }
  }
  return hosts;
}

StatusOr<std::unique_ptr<ClusterGroup>> JoinAs(const ClusterDescription& host,
                                               ClusterSockets& sockets, ByteSpan key,
                                               const ClusterIdentity& identity) {
  static const SystemClock clock;
  StatusOr<ClusterSockets> opened = OpenClusterSockets(host, clock);
  RETURN_IF_ERROR(opened.status());
  sockets = *std::move(opened);
  return ClusterGroup::Join(host, sockets, key, identity, clock, {});
}

// Runs `work` for every rank, each on a thread of its own, in a group on loopback.
void InGroup(const std::vector<ClusterDescription>& hosts,
             const std::function<void(ClusterGroup&)>& work) {
  std::vector<std::jthread> threads;
  std::vector<Status> joined(hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      ClusterSockets sockets;
      StatusOr<std::unique_ptr<ClusterGroup>> group = JoinAs(hosts[rank], sockets, kKey, kIdentity);
      joined[rank] = group.status();
      if (group.ok()) {
        work(**group);
      }
    });
  }
  threads.clear();
  for (const Status& status : joined) {
    CHECK(status == OkStatus());
  }
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace

TEST_CASE("Cluster group: an all-reduce gives every rank the sum in rank order, of any size") {
  constexpr std::size_t kRanks = 3;
  const std::vector<ClusterDescription> hosts = Cluster(kRanks);
  std::array<std::vector<std::vector<float>>, kRanks> results;
  std::array<double, kRanks> scalars{};
  const std::vector<std::size_t> sizes = {0, 1, 2, 7, 1000, 2'000'003};
  InGroup(hosts, [&](ClusterGroup& group) {
    for (const std::size_t size : sizes) {
      SeededRandom random(group.Rank() + 1);
      std::vector<float> values(size);
      for (float& value : values) {
        value = static_cast<float>(static_cast<double>(random.Below(2'000'001)) / 3e5 - 3.0);
      }
      REQUIRE(group.AllReduceSum(values).ok());
      results[group.Rank()].push_back(std::move(values));
    }
    scalars[group.Rank()] = group.AllReduceSum(0.1 * static_cast<double>(group.Rank() + 1)).value();
  });
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<double> expected(sizes[i], 0);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      SeededRandom random(rank + 1);
      for (double& sum : expected) {
        sum += static_cast<double>(
            static_cast<float>(static_cast<double>(random.Below(2'000'001)) / 3e5 - 3.0));
      }
    }
    const std::vector<float> rounded(expected.begin(), expected.end());
    for (const auto& of_rank : results) {
      CHECK(SameBits(of_rank[i], rounded));
    }
  }
  CHECK(scalars[0] == 0.1 + 0.2 + 0.1 * 3.0);
  CHECK(scalars[1] == scalars[0]);
  CHECK(scalars[2] == scalars[0]);
}

TEST_CASE("Cluster group: training over it has the bits of mirrored with as many replicas") {
  constexpr std::size_t kRanks = 3;
  models::TrainingSpec training;
  training.model = models::NetworkSpec{
      .num_inputs = 12, .hidden = {8}, .activation = models::Activation::kTanh, .num_outputs = 3};
  training.optimizer = {.kind = models::OptimizerKind::kAdam, .learning_rate = 0.01};
  const std::vector<float> first = models::InitialParameters(training.model, 5);
  models::Tensor inputs({65, 12});
  SeededRandom random(8);
  for (float& value : inputs.Values()) {
    value = static_cast<float>(static_cast<double>(random.Below(1001)) / 500.0 - 1.0);
  }
  std::vector<std::uint32_t> labels(65);
  for (std::uint32_t& label : labels) {
    label = static_cast<std::uint32_t>(random.Below(3));
  }
  const models::BatchView all = {inputs.AsMatrix(), labels};
  const auto mirrored =
      models::MakeStrategy({.kind = models::StrategyKind::kMirrored, .replicas = kRanks}, training,
                           first)
          .value();
  std::vector<double> losses;
  const auto steps = [&all](models::Strategy& strategy) {
    std::vector<double> seen;
    for (const std::size_t rows : {65U, 64U, 1U, 2U, 33U}) {
      seen.push_back(strategy.Step(all.Rows(65 - rows, rows)).value());
    }
    seen.push_back(strategy.Loss(all).value());
    return seen;
  };
  losses = steps(*mirrored);

  std::array<std::vector<float>, kRanks> weights;
  std::array<std::vector<double>, kRanks> seen;
  InGroup(Cluster(kRanks), [&](ClusterGroup& group) {
    const auto strategy = models::MakeStrategy({.kind = models::StrategyKind::kMultiWorkerMirrored,
                                                .workers = &group},
                                               training, first)
                              .value();
    seen[group.Rank()] = steps(*strategy);
    weights[group.Rank()].assign(strategy->Parameters().begin(), strategy->Parameters().end());
  });
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(SameBits(weights[rank], mirrored->Parameters()));
    CHECK(seen[rank] == losses);
  }
}

TEST_CASE("Cluster group: a worker that goes, gives up or is elsewhere is named at once") {
  const std::vector<ClusterDescription> hosts = Cluster(2);
  const std::string name = "worker 1 (" + hosts[0].workers[1].Text() + ")";
  const auto chief_sees = [&](const std::function<void(ClusterGroup&)>& worker) {
    Status seen;
    InGroup(hosts, [&](ClusterGroup& group) {
      if (group.Rank() == 1) {
        worker(group);
        return;
      }
      std::vector<float> values(100'000, 1.0F);
      seen = group.AllReduceSum(values);
    });
    CHECK(seen.code() == StatusCode::kUnavailable);
    return std::string(Message(seen));
  };
  CHECK(chief_sees([](ClusterGroup& /*gone*/) {}).find(name + ": the other side closed") == 0);
  CHECK(chief_sees([](ClusterGroup& group) {
          CHECK(group.Send(0, ClusterFrame::kRefused, AsBytes(R"({"reason":1})")).ok());
        }) == name + " has given the task up; its output says why");
  CHECK(chief_sees([](ClusterGroup& group) {
          std::vector<float> other(7);
          CHECK_FALSE(group.AllReduceSum(other).ok());
        }) == name + " is at another place of the training");
}

TEST_CASE("Cluster group: a silent worker is given up after the patience") {
  std::vector<ClusterDescription> hosts = Cluster(2);
  for (ClusterDescription& host : hosts) {
    host.silence = std::chrono::seconds(1);
  }
  Status seen;
  InGroup(hosts, [&](ClusterGroup& group) {
    if (group.Rank() == 0) {
      std::vector<float> values(10);
      seen = group.AllReduceSum(values);
    } else {
      // Takes what the chief sends, says nothing, and waits until it goes.
      CHECK(group.Receive(0, 1 << 20, std::nullopt, {})->kind == ClusterFrame::kValues);
      CHECK_FALSE(group.Receive(0, 1 << 20, std::nullopt, {}).ok());
    }
  });
  CHECK(Message(seen) ==
        "worker 1 (" + hosts[0].workers[1].Text() + ") has said nothing for 1 seconds");
}

TEST_CASE(
    "Cluster group: a worker that goes, gives up or falls silent between two buckets is named") {
  std::vector<ClusterDescription> hosts = Cluster(2);
  for (ClusterDescription& host : hosts) {
    host.silence = std::chrono::seconds(1);
  }
  models::TrainingSpec training;
  training.model = models::NetworkSpec{.num_inputs = 300,
                                       .hidden = {256, 256},
                                       .activation = models::Activation::kTanh,
                                       .num_outputs = 3};
  training.optimizer = {.kind = models::OptimizerKind::kSgd, .learning_rate = 0.1};
  const std::vector<models::Bucket> buckets =
      models::CutIntoBuckets(models::LayoutOf(training.model));
  REQUIRE(buckets.size() == 2);
  const models::Tensor inputs({6, 300});
  const std::vector<std::uint32_t> labels(6);
  const std::string name = "worker 1 (" + hosts[0].workers[1].Text() + ")";
  // Worker 1 trains one step, and takes part in as many buckets of the second.
  const auto chief_sees = [&](std::size_t taken, const std::function<void(ClusterGroup&)>& then) {
    Status seen;
    InGroup(hosts, [&](ClusterGroup& group) {
      const auto strategy =
          models::MakeStrategy(
              {.kind = models::StrategyKind::kMultiWorkerMirrored, .workers = &group}, training,
              models::InitialParameters(training.model, 5))
              .value();
      const models::BatchView batch = {inputs.AsMatrix(), labels};
      REQUIRE(strategy->Step(batch).ok());
      if (group.Rank() == 0) {
        seen = strategy->Step(batch).status();
        CHECK(strategy->Step(batch).status() == seen);
        return;
      }
      for (std::size_t i = 0; i < taken; ++i) {
        std::vector<float> values(buckets[i].size);
        REQUIRE(group.AllReduceSum(values).ok());
      }
      then(group);
    });
    CHECK(seen.code() == StatusCode::kUnavailable);
    return std::string(Message(seen));
  };
  for (const std::size_t taken : {0U, 1U, 2U}) {  // after the last come the losses
    CAPTURE(taken);
    CHECK(chief_sees(taken, [](ClusterGroup& /*gone*/) {}).find(name + ": ") == 0);
    CHECK(chief_sees(taken, [](ClusterGroup& group) {
            CHECK(group.Send(0, ClusterFrame::kRefused, AsBytes(R"({"reason":1})")).ok());
          }) == name + " has given the task up; its output says why");
  }
  CHECK(chief_sees(1, [](ClusterGroup& group) {
          while (group.Receive(0, 1 << 20, std::nullopt, {}).ok()) {
          }
        }) == name + " has said nothing for 1 seconds");
}

TEST_CASE("Cluster group: frames arrive whole, and longer ones than allowed are refused") {
  const Bytes large(3'000'000, 7);
  InGroup(Cluster(2), [&](ClusterGroup& group) {
    if (group.Rank() == 1) {
      CHECK(group.Send(0, ClusterFrame::kDone, large).ok());
      CHECK(group.Send(0, ClusterFrame::kReady, {}).ok());
      CHECK(group.Send(0, ClusterFrame::kTask, AsBytes("four")).ok());
      CHECK_FALSE(group.Receive(0, 10, std::nullopt, {}).ok());
      return;
    }
    const auto done = group.Receive(1, 1 << 22, std::nullopt, {});
    REQUIRE(done.ok());
    CHECK(done->kind == ClusterFrame::kDone);
    CHECK(done->payload == large);
    CHECK(group.Receive(1, 0, std::nullopt, {})->kind == ClusterFrame::kReady);
    CHECK(group.Receive(1, 3, std::nullopt, {}).status().code() == StatusCode::kUnavailable);
  });
}

TEST_CASE("Cluster group: another key, federation, program or rank does not join") {
  struct Case {
    Bytes key = kKey;
    ClusterIdentity identity = kIdentity;
    std::string worker_says;
  };
  ClusterIdentity program = kIdentity;
  program.trainer.bytes[0] = 1;
  ClusterIdentity data = kIdentity;
  data.data.bytes[31] = 1;
  ClusterIdentity site = kIdentity;
  site.site = *SiteId::Parse("other");
  for (const Case& other :
       {Case{Bytes(crypto::kPskBytes, 1), kIdentity, "does not hold the same key"},
        Case{kKey, program, "another trainer program"}, Case{kKey, data, "another snapshot"},
        Case{kKey, site, "another federation"}}) {
    CAPTURE(other.worker_says);
    std::vector<ClusterDescription> hosts = Cluster(2);
    hosts[0].rendezvous = std::chrono::seconds(1);
    Status chief;
    Status worker;
    {
      const std::jthread first([&] {
        ClusterSockets sockets;
        chief = JoinAs(hosts[0], sockets, kKey, kIdentity).status();
      });
      const std::jthread second([&] {
        ClusterSockets sockets;
        worker = JoinAs(hosts[1], sockets, other.key, other.identity).status();
      });
    }
    CHECK(chief.code() == StatusCode::kUnavailable);
    CHECK(std::string(Message(chief)).find("workers are missing after 1 seconds: 1 (127.0.0.1:") ==
          0);
    CAPTURE(Message(worker));
    CHECK(std::string(Message(worker)).find(other.worker_says) != std::string::npos);
  }
}

TEST_CASE("Cluster group: a worker that started again takes its seat in the next group") {
  const std::vector<ClusterDescription> hosts = Cluster(2);
  const SystemClock clock;
  int groups = 0;
  const std::jthread chief([&] {
    ClusterSockets sockets = OpenClusterSockets(hosts[0], clock).value();
    for (int turn = 0; turn < 3; ++turn) {
      auto group = ClusterGroup::Join(hosts[0], sockets, kKey, kIdentity, clock, {});
      REQUIRE(group.ok());
      CHECK((*group)->AllReduceSum(1.0).value() == 2.0);
      ++groups;
    }
  });
  for (int turn = 0; turn < 3; ++turn) {
    ClusterSockets sockets = OpenClusterSockets(hosts[1], clock).value();
    const auto group = ClusterGroup::Join(hosts[1], sockets, kKey, kIdentity, clock, {});
    REQUIRE(group.ok());
    CHECK((*group)->AllReduceSum(1.0).value() == 2.0);
  }
}

TEST_CASE("Cluster sockets: an interface or an address that is not there is named") {
  std::vector<ClusterDescription> hosts = Cluster(2);
  const SystemClock clock;
  hosts[0].interface = "nowhere0";
  const Status interface = OpenClusterSockets(hosts[0], clock).status();
  CHECK(interface.code() == StatusCode::kFailedPrecondition);
  CHECK(std::string(Message(interface)).find("`nowhere0`") != std::string::npos);
  hosts[1].rendezvous = std::chrono::seconds(1);
  const Status nobody = OpenClusterSockets(hosts[1], clock).status();
  CHECK(nobody.code() == StatusCode::kUnavailable);
  CHECK(std::string(Message(nobody)).find("worker 0 does not listen on `127.0.0.1:") == 0);
}

}  // namespace domicile::site_agent
