// A site that trains on two hosts beside sites of one: two trainer services over loopback, one of
// which dies in the middle of a round.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "site_agent/cluster/free_ports.h"
#include "tests/cases/real_sites.h"
#include "tests/support/log_watch.h"

namespace domicile::test {
namespace {

using audit::EventType;
using Tensors = CaseFederation::Tensors;

constexpr int kRounds = 2;

// Rows that no line separates, others for each site.
std::string Table(int site) {
  std::string csv = "a,b,c,ill\n";
  for (int row = 0; row < 90; ++row) {
    const int mixed = row * 37 + site * 11;
    csv += std::to_string(mixed % 17) + "," + std::to_string(mixed % 23 - 11) + "," +
           std::to_string(mixed % 7) + "," + (mixed % 5 < 2 ? "1" : "0") + "\n";
  }
  return csv;
}

std::string Job() {
  std::string inputs;
  for (const char* column : {"a", "b", "c"}) {
    inputs += std::string("[[feature]]\ncolumn = \"") + column + "\"\nkind = \"number\"\n";
  }
  // Long enough for a test to see it at work.
  return TrainingJobFile(
      {.inputs = inputs + "[label]\ncolumn = \"ill\"\nclasses = [\"0\", \"1\"]\n",
       .model = "kind = \"logistic\"\n",
       .training = "optimizer = \"sgd\"\nlearning_rate = 0.001\n"
                   "local_steps = 40000\nbatch = 32\n",
       .rounds = kRounds});
}

std::vector<CaseSite> Sites(const std::string& alpha_tables) {
  std::vector<CaseSite> sites = {TableSite("alpha", "DE", Table(0)),
                                 TableSite("bravo", "FR", Table(1)),
                                 TableSite("charlie", "NL", Table(2))};
  sites[0].tables = alpha_tables;
  return sites;
}

Tensors Run(CaseFederation& federation, const JobId& job) {
  const auto ended = Must(federation.WaitForEnd(job));
  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == kRounds);
  for (const auto& metrics : ended.metrics()) {
    CHECK(metrics.contributors() == 3);
    CHECK(metrics.examples() == 3 * 90);
  }
  return Must(federation.AllTensors(job));
}

Tensors RunWithReplicas() {
  auto federation = Must(CaseFederation::Start(
      Sites("[compute]\nstrategy = \"mirrored\"\nreplicas = 2\nthreads = 1\n")));
  const JobId job = Must(federation->Submit(Job()));
  Must(federation->Approve(job));
  return Run(*federation, job);
}

// A federation whose first site has two hosts, both on this machine.
class ClusterFederation {
 public:
  ClusterFederation() {
    const std::vector<std::uint16_t> ports = site_agent::FreePorts(2).value();
    std::vector<CaseSite> sites = Sites(
        "[compute]\nstrategy = \"multi_worker_mirrored\"\nthreads = 1\n"
        "checkpoint_steps = 500\ncluster = \"cluster0.toml\"\n"
        "[sandbox]\nnetwork = \"site_cluster\"\n");
    for (int rank = 0; rank < 2; ++rank) {
      std::string text =
          "[cluster]\ninterface = \"lo\"\nkey = \"cluster.key\"\nrank = " + std::to_string(rank) +
          "\n";
      for (const std::uint16_t port : ports) {
        text += "[[worker]]\naddress = \"127.0.0.1:" + std::to_string(port) + "\"\n";
      }
      sites[0].data["cluster" + std::to_string(rank) + ".toml"] = text;
    }
    sites[0].data["cluster.key"] = std::string(64, 'c') + "\n";
    sites[0].policy.emplace_back("network = \"none\"", "network = \"site_cluster\"");
    federation_ = Must(CaseFederation::Start(sites));
    PrepareWorker();
    StartWorker();
  }

  CaseFederation& Federation() { return *federation_; }

  // Whether both hosts have kept a checkpoint of the task they are at.
  bool HaveCheckpoints() const {
    for (const char* state : {"state/checkpoints", "state1/checkpoints"}) {
      std::error_code error;
      const std::filesystem::directory_iterator files(In(state), error);
      const bool any = !error && std::any_of(begin(files), end(files), [](const auto& file) {
        return file.path().extension() == ".safetensors";
      });
      if (!any) {
        return false;
      }
    }
    return true;
  }
  void KillWorker() {
    REQUIRE(kill(worker_->pid(), SIGKILL) == 0);
    REQUIRE(worker_->Wait() == 128 + SIGKILL);
    worker_.reset();
  }
  void StartWorker() {
    worker_ = Must(cli::Child::Start(
        {std::string(DOMICILE_BINARY_DIR) + "/bin/domicile-trainer", "--config", In("worker.toml")},
        In("worker-start.log")));
    CHECK(Must(worker_->WaitReady(kSoon)) == "worker 1 of 2");
  }
  std::string In(const std::string& name) const {
    return federation_->TrainerFolder("alpha") + "/" + name;
  }

 private:
  // The other host's configuration: the chief's but for its own files, and the chief's salt.
  void PrepareWorker() const {
    std::string text = Must(ReadFile(In("trainer.toml"), 1 << 20));
    for (const auto& [from, to] : {std::pair<std::string, std::string>("\"state\"", "\"state1\""),
                                   {"trainer.sock", "worker.sock"},
                                   {"trainer.log", "worker.log"},
                                   {"cluster0.toml", "cluster1.toml"}}) {
      REQUIRE(text.find(from) != std::string::npos);
      text.replace(text.find(from), from.size(), to);
    }
    Must(WriteFileDurably(In("worker.toml"), AsBytes(text)));
    Must(CreateFolders(In("state1")));
    REQUIRE(std::filesystem::copy_file(In("state/salt"), In("state1/salt")));
  }

  std::unique_ptr<CaseFederation> federation_;
  std::optional<cli::Child> worker_;
};

}  // namespace

TEST_CASE("Cluster site: a worker killed in a round and started again costs no bit of the model") {
  ClusterFederation cluster;
  CaseFederation& federation = cluster.Federation();
  const JobId job = Must(federation.Submit(Job()));
  Must(federation.Approve(job));
  const auto started = [&federation] {
    return Count(Must(federation.Leaves("alpha")), EventType::kTrainStarted);
  };
  const auto ended = [&federation] {
    return Count(Must(federation.Leaves("alpha")), EventType::kTrainEnded);
  };

  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (started() == 0 || !cluster.HaveCheckpoints()) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  cluster.KillWorker();
  CHECK(ended() == 0);  // it died in the middle of the first round
  cluster.StartWorker();

  const Tensors model = Run(federation, job);
  CHECK(started() == kRounds);
  CHECK(ended() == kRounds);
  CHECK(Must(ReadFile(cluster.In("worker.log"), 1 << 20))
            .find("goes on from the checkpoint of step") != std::string::npos);
  federation.Stop();
  Must(federation.AuditLogs());
  CHECK(model == RunWithReplicas());
}

TEST_CASE("Cluster site: without the policy's leave for its network it takes no part") {
  std::vector<CaseSite> sites = Sites(
      "[compute]\nstrategy = \"mirrored\"\nthreads = 1\n"
      "[sandbox]\nnetwork = \"loopback\"\n");
  sites.push_back(TableSite("delta", "AT", Table(3)));
  auto federation = Must(CaseFederation::Start(sites));
  const JobId job = Must(federation->Submit(Job()));
  for (const char* site : {"bravo", "charlie", "delta"}) {
    Must(federation->ApproveAt(job, site));
  }

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  CHECK(policy::Code(ReasonAt(ended, "alpha")) == policy::Code(policy::Reason::kSandboxMissing));
  CHECK(Count(Must(federation->Leaves("alpha")), EventType::kTrainStarted) == 0);
}

}  // namespace domicile::test
