#include "site_agent/cluster/description.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace domicile::site_agent {
namespace {

const char* const kWhole =
    "[cluster]\ninterface = \"eth1\"\nkey = \"cluster.key\"\nrank = 1\n"
    "[[worker]]\naddress = \"10.1.0.1:7100\"\n"
    "[[worker]]\naddress = \"[fd00::2]:7100\"\n";
const char* const kBare = "[cluster]\ninterface = \"eth1\"\nkey = \"cluster.key\"\n";

std::string ErrorOf(const std::string& toml, const std::optional<std::string>& tf_config = {}) {
  return std::string(Message(ParseClusterDescription(toml, "/c/cluster.toml", tf_config).status()));
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

}  // namespace

TEST_CASE("Cluster description: a whole file") {
  const ClusterDescription cluster =
      ParseClusterDescription(kWhole, "/c/cluster.toml", std::nullopt).value();
  CHECK(cluster.interface == "eth1");
  CHECK(cluster.key_file == "/c/cluster.key");
  CHECK(cluster.rank == 1);
  CHECK_FALSE(cluster.IsChief());
  CHECK(cluster.workers == std::vector<WorkerAddress>{{"10.1.0.1", 7100}, {"fd00::2", 7100}});
  CHECK(cluster.workers[1].Text() == "[fd00::2]:7100");
  CHECK(cluster.rendezvous == std::chrono::seconds(300));
  CHECK(cluster.silence == std::chrono::seconds(30));
}

TEST_CASE("Cluster description: TF_CONFIG stands for rank and workers") {
  const ClusterDescription cluster =
      ParseClusterDescription(kBare, "/c/cluster.toml",
                              R"({"cluster":{"worker":["b.lan:1","c.lan:2"],"chief":["a.lan:3"]},
              "task":{"type":"worker","index":1},"rpc_layer":"grpc"})")
          .value();
  CHECK(cluster.rank == 2);
  CHECK(cluster.workers == std::vector<WorkerAddress>{{"a.lan", 3}, {"b.lan", 1}, {"c.lan", 2}});
  CHECK(ParseClusterDescription(kBare, "c",
                                R"({"cluster":{"worker":["b:1","c:2"]},
                                    "task":{"type":"worker","index":0}})")
            ->IsChief());
}

TEST_CASE("Cluster description: what is wrong is named with its place") {
  CHECK(ErrorOf(Replaced(kWhole, "rank = 1\n", "")) ==
        "/c/cluster.toml:1:1: `cluster.rank` is missing, and so is the variable TF_CONFIG");
  CHECK(ErrorOf(Replaced(kWhole, "rank = 1", "rank = 2")) ==
        "/c/cluster.toml: rank 2 is beyond the 2 workers, which count from 0");
  CHECK(ErrorOf(Replaced(kWhole, "[fd00::2]:7100", "10.1.0.1:7100")) ==
        "/c/cluster.toml: `10.1.0.1:7100` stands twice");
  CHECK(ErrorOf(Replaced(kWhole, "eth1", "a/b")).find("`cluster.interface` must be the name") !=
        std::string::npos);
  CHECK(ErrorOf(Replaced(kWhole, "rank", "rnak")).find("rank") != std::string::npos);
  for (const char* const bad :
       {"10.1.0.1", "10.1.0.1:", "10.1.0.1:0", "10.1.0.1:65536", "10.1.0.1:7x", ":7100",
        "fd00::2:7100", "[10.1.0.1:7100", "a b:1", "a/b:1"}) {
    CAPTURE(bad);
    CHECK(ErrorOf(Replaced(kWhole, "10.1.0.1:7100", bad)).find("/c/cluster.toml:6:11") == 0);
  }
  CHECK(ErrorOf(kWhole, "{}").find("TF_CONFIG: remove one") != std::string::npos);
}

TEST_CASE("Cluster description: a TF_CONFIG that does not name one synchronous worker is refused") {
  struct Case {
    const char* text;
    const char* says;
  };
  for (
      const Case& bad : std::vector<Case>{
          {"", "TF_CONFIG"},
          {"[]", "objects `cluster` and `task`"},
          {R"({"cluster":{"worker":["a:1","b:2"]}})", "objects `cluster` and `task`"},
          {R"({"cluster":{"worker":["a:1"],"ps":["b:2"]},"task":{"type":"worker","index":0}})",
           "`cluster.ps`: only"},
          {R"({"cluster":{"worker":["a:1","b"]},"task":{"type":"worker","index":0}})",
           "`cluster.worker`: must be `HOST:PORT`"},
          {R"({"cluster":{"worker":[1,2]},"task":{"type":"worker","index":0}})",
           "`cluster.worker` must be a list"},
          {R"({"cluster":{"worker":"a:1"},"task":{"type":"worker","index":0}})",
           "`cluster.worker` must be a list"},
          {R"({"cluster":{"worker":["a:1","b:2"]},"task":{"type":"ps","index":0}})",
           "`task.type` must be"},
          {R"({"cluster":{"worker":["a:1","b:2"]},"task":{"type":"worker","index":2}})",
           "`task.index` must count"},
          {R"({"cluster":{"worker":["a:1","b:2"]},"task":{"type":"chief","index":0}})",
           "`task.index` must count"},
          {R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":0}})",
           "TF_CONFIG: a cluster has 2 to 64 workers, not 1"},
          {R"({"cluster":{"chief":["a:1","b:2"],"worker":["c:3"]},"task":{"type":"chief","index":0}})",
           "must have one address"}}) {
    CAPTURE(bad.text);
    CHECK(ErrorOf(kBare, bad.text).find(bad.says) != std::string::npos);
  }
}

}  // namespace domicile::site_agent
