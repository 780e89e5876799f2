// The real trainer program on several hosts of a site.
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "site_agent/cluster/free_ports.h"
#include "site_agent/trainer/testing_program.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;

constexpr std::size_t kHosts = 3;

// A command on this machine; whether it succeeded.
bool Shell(const std::string& command) { return std::system(command.c_str()) == 0; }

// Where the hosts are: on loopback of this machine, or each in a network namespace of its own that
// a bridge joins.
class Network {
 public:
  virtual ~Network() = default;
  virtual std::string Interface() const = 0;
  virtual std::string Address(std::size_t rank) const = 0;
  virtual std::vector<std::string> Prefix(std::size_t rank) const = 0;
};

class Loopback final : public Network {
 public:
  std::string Interface() const override { return "lo"; }
  std::string Address(std::size_t rank) const override {
    return "127.0.0.1:" + std::to_string(ports_[rank]);
  }
  std::vector<std::string> Prefix(std::size_t /*rank*/) const override { return {}; }

 private:
  std::vector<std::uint16_t> ports_ = FreePorts(kHosts).value();
};

class Namespaces final : public Network {
 public:
  // Whether this machine lets the test make them.
  static bool Possible() {
    return geteuid() == 0 && Shell("ip netns add domicile-probe 2>/dev/null") &&
           Shell("ip netns del domicile-probe");
  }
  Namespaces() : name_("dom" + std::to_string(getpid())) {
    REQUIRE(Shell("ip link add " + name_ + " type bridge && ip link set " + name_ + " up"));
    for (std::size_t rank = 0; rank < kHosts; ++rank) {
      const std::string host = Host(rank);
      REQUIRE(Shell("ip netns add " + host + " && ip link add " + host +
                    " type veth peer name eth1" + " netns " + host + " && ip link set " + host +
                    " master " + name_ + " up" + " && ip -n " + host + " addr add 10.99.0." +
                    std::to_string(rank + 1) + "/24 dev eth1 && ip -n " + host +
                    " link set eth1 up"));
    }
  }
  ~Namespaces() override {
    for (std::size_t rank = 0; rank < kHosts; ++rank) {
      Shell("ip netns del " + Host(rank));
    }
    Shell("ip link del " + name_);
  }
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  std::string Interface() const override { return "eth1"; }
  std::string Address(std::size_t rank) const override {
    return "10.99.0." + std::to_string(rank + 1) + ":7100";
  }
  std::vector<std::string> Prefix(std::size_t rank) const override {
    return {"/usr/bin/env", "ip", "netns", "exec", Host(rank)};
  }

 private:
  std::string Host(std::size_t rank) const { return name_ + "h" + std::to_string(rank); }
  std::string name_;
};

// One site of three hosts; rank 0 serves `t0.sock`.
class TestCluster {
 public:
  explicit TestCluster(const Network& network) : network_(network) {
    site.Write("cluster.key", std::string(64, 'c') + "\n");
    REQUIRE(chmod(site.In("cluster.key").c_str(), 0600) == 0);
    for (std::size_t rank = 0; rank < kHosts; ++rank) {
      const std::string number = std::to_string(rank);
      std::string cluster = "[cluster]\ninterface = \"" + network.Interface() +
                            "\"\nkey = \"cluster.key\"\nrank = " + number +
                            "\nrendezvous_seconds = 60\n";
      for (std::size_t other = 0; other < kHosts; ++other) {
        cluster += "[[worker]]\naddress = \"" + network.Address(other) + "\"\n";
      }
      site.Write("cluster" + number + ".toml", cluster);
      site.Write(
          "trainer" + number + ".toml",
          site.Config("state" + number, "t" + number + ".sock", "output = \"log" + number + "\"\n",
                      "[compute]\nstrategy = \"multi_worker_mirrored\"\nthreads = 1\n"
                      "checkpoint_steps = 500\n"
                      "cluster = \"cluster" +
                          number +
                          ".toml\"\n"
                          "[sandbox]\nnetwork = \"site_cluster\"\n"));
      REQUIRE(CreateFolders(site.In("state" + number)).ok());
      const std::string salt = site.In("state" + number + "/salt");
      REQUIRE(WriteFileDurably(salt, Bytes(32, 5), 0600).ok());
    }
    hosts.resize(kHosts);
    // All at once: a higher rank starts only when the lower ones listen.
    for (std::size_t rank = 0; rank < kHosts; ++rank) {
      Start(rank);
    }
    CHECK(hosts[0]->Line() == "ready: unix:" + site.In("t0.sock"));
    for (std::size_t rank = 1; rank < kHosts; ++rank) {
      CHECK(hosts[rank]->Line() == "ready: worker " + std::to_string(rank) + " of 3");
    }
    site.Approve("t0.sock");
  }
  void Start(std::size_t rank) {
    std::vector<std::string> command = network_.Prefix(rank);
    command.insert(command.end(), {Program("domicile-trainer"), "--config",
                                   site.In("trainer" + std::to_string(rank) + ".toml")});
    hosts[rank] = std::make_unique<Process>(command, false);
  }

  TestSite site;
  std::vector<std::unique_ptr<Process>> hosts;

 private:
  const Network& network_;
};

// What one host with as many replicas as the cluster has hosts makes of the task.
std::vector<models::NamedTensor> MirroredDelta(const TestSite& like, std::uint32_t local_steps) {
  TestSite site({}, "[compute]\nstrategy = \"mirrored\"\nreplicas = 3\n");
  site.job.plan.training.local_steps = local_steps;
  site.job.body.plan = contracts::PlanDigest(site.job.plan);
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  site.Approve();
  TrainerClient client = site.Connect();
  CHECK(client.hello().network == policy::SandboxNetwork::kNone);
  CHECK(like.job.plan == site.job.plan);
  const auto ended = client.RunTask(site.Request(1, PhaseKind::kTrain), {}, {});
  REQUIRE(ended.ok());
  REQUIRE(std::holds_alternative<TaskResult>(*ended));
  return std::get<TrainNumbers>(std::get<TaskResult>(*ended).numbers).delta;
}

std::vector<models::NamedTensor> DeltaOf(const StatusOr<TaskOutcome>& ended) {
  REQUIRE(ended.ok());
  if (const auto* failed = std::get_if<FailedMessage>(&*ended)) {
    FAIL("the task failed: " << policy::Code(failed->reason));
  }
  return std::get<TrainNumbers>(std::get<TaskResult>(*ended).numbers).delta;
}

void TrainsAsMirrored(const Network& network) {
  TestCluster cluster(network);
  TrainerClient client = cluster.site.Connect("t0.sock");
  CHECK(client.hello().network == policy::SandboxNetwork::kSiteCluster);
  CHECK(client.hello().sandbox.size() == 6);

  // Two tasks over one group, and a phase that the chief does alone between them.
  const auto first = client.RunTask(cluster.site.Request(1, PhaseKind::kTrain), {}, {});
  const auto evaluated = client.RunTask(cluster.site.Request(40, PhaseKind::kEvaluate), {}, {});
  const auto expected = MirroredDelta(cluster.site, cluster.site.job.plan.training.local_steps);

  CHECK(DeltaOf(first) == expected);
  REQUIRE(evaluated.ok());
  CHECK(std::holds_alternative<TaskResult>(*evaluated));
  for (std::size_t rank = kHosts; rank-- > 0;) {
    cluster.hosts[rank]->Signal(SIGTERM);
    CHECK(cluster.hosts[rank]->Wait() == 0);
  }
}

}  // namespace

TEST_CASE(
    "Cluster of trainers: three programs on loopback give the bits of three replicas on one") {
  TrainsAsMirrored(Loopback());
}

TEST_CASE("Cluster of trainers: three hosts, each in a network namespace of its own") {
  if (!Namespaces::Possible()) {
    std::puts("skipped: network namespaces cannot be made here");
    return;
  }
  TrainsAsMirrored(Namespaces());
}

TEST_CASE("domicile-trainer: with a loopback of its own it says so, and trains as without") {
  TestSite site(
      {}, "[compute]\nstrategy = \"mirrored\"\nreplicas = 3\n[sandbox]\nnetwork = \"loopback\"\n");
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  site.Approve();
  TrainerClient client = site.Connect();
  CHECK(client.hello().network == policy::SandboxNetwork::kLoopback);
  CHECK(client.hello().sandbox.size() == 6);
  const auto ended = client.RunTask(site.Request(1, PhaseKind::kTrain), {}, {});
  CHECK(DeltaOf(ended) == MirroredDelta(site, site.job.plan.training.local_steps));
}

TEST_CASE("Cluster of trainers: a worker killed in the middle costs time and no result") {
  const Loopback network;
  TestCluster cluster(network);
  // Long enough for the first progress, which comes after a second, to find it at work.
  cluster.site.job.plan.training.local_steps = 60'000;
  cluster.site.job.body.plan = contracts::PlanDigest(cluster.site.job.plan);
  TrainerClient client = cluster.site.Connect("t0.sock");
  bool killed = false;
  const auto ended = client.RunTask(cluster.site.Request(1, PhaseKind::kTrain),
                                    [&](const TaskProgress& told) {
                                      if (told.percent == 0 || killed) {
                                        return;
                                      }
                                      killed = true;
                                      cluster.hosts[1]->Signal(SIGKILL);
                                      CHECK(cluster.hosts[1]->Wait() == -1);
                                      // The others notice by themselves. Rank 2 has lost a lower
                                      // rank, which it cannot find again behind its walls: it ends,
                                      // and is started again as a service manager would.
                                      CHECK(cluster.hosts[2]->Wait() == 3);
                                      cluster.Start(1);
                                      cluster.Start(2);
                                    },
                                    {});
  CHECK(killed);
  // What was done before is not done again, though each host had kept its own checkpoints.
  for (const char* const log : {"log0", "log1", "log2"}) {
    CAPTURE(log);
    CHECK(ReadFile(cluster.site.In(log), 1 << 20)->find("goes on from the checkpoint of step") !=
          std::string::npos);
  }
  CHECK(DeltaOf(ended) == MirroredDelta(cluster.site, 60'000));
}

TEST_CASE("Cluster of trainers: a worker whose own keys do not approve the task refuses it") {
  const Loopback network;
  TestCluster cluster(network);
  cluster.hosts[2]->Signal(SIGTERM);
  CHECK(cluster.hosts[2]->Wait() == 0);
  const TestSite stranger;
  cluster.site.Write("trainer2.toml", [&] {
    std::string config = *ReadFile(cluster.site.In("trainer2.toml"), 1 << 20);
    const std::string ours = cluster.site.job.approver.Verifier().Print();
    return config.replace(config.find(ours), ours.size(), stranger.job.approver.Verifier().Print());
  }());
  cluster.Start(2);
  CHECK(cluster.hosts[2]->Line() == "ready: worker 2 of 3");
  TrainerClient client = cluster.site.Connect("t0.sock");

  const auto ended = client.RunTask(cluster.site.Request(1, PhaseKind::kTrain), {}, {});

  REQUIRE(ended.ok());
  REQUIRE(std::holds_alternative<FailedMessage>(*ended));
  CHECK(std::get<FailedMessage>(*ended).reason == policy::Reason::kTrainerFailed);
}

}  // namespace domicile::site_agent
