#include "site_agent/trainer/config.h"

#include <string>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::site_agent {
namespace {

std::string Key(std::string_view name) {
  SystemRandom random;
  return crypto::NoteSigner::Generate(name, random)->Verifier().Print();
}

std::string Minimal() {
  return "[trainer]\nfederation = \"heart\"\nsite = \"charite\"\nstate = \"state\"\n"
         "socket = \"/run/t.sock\"\ndatasets = [\"d.toml\"]\napprovals = 1\n"
         "approvers = [\"" +
         Key("a") + "\"]\n";
}

std::string ErrorOf(const std::string& toml) {
  const StatusOr<TrainerConfig> config = ParseTrainerConfig(toml, "/etc/d/trainer.toml");
  return config.ok() ? "" : std::string(Message(config.status()));
}

}  // namespace

TEST_CASE("trainer.toml: paths stand beside the file, and defaults are the strict ones") {
  const StatusOr<TrainerConfig> config = ParseTrainerConfig(Minimal(), "/etc/d/trainer.toml");

  REQUIRE(config.ok());
  CHECK(config->state == "/etc/d/state");
  CHECK(config->socket == "/run/t.sock");
  CHECK(config->datasets == std::vector<std::string>{"/etc/d/d.toml"});
  CHECK(config->socket_mode == 0600);
  CHECK(config->strategy.kind == models::StrategyKind::kOneDevice);
  CHECK(config->strategy.threads >= 1);
  CHECK_FALSE(config->output.has_value());
}

TEST_CASE("trainer.toml: every key is read") {
  const std::string text = Minimal() +
                           "socket_mode = \"0660\"\noutput = \"out.log\"\noutput_bytes = 5000\n"
                           "[compute]\nstrategy = \"mirrored\"\nthreads = 3\nreplicas = 4\n"
                           "[sandbox]\nnetwork = \"none\"\n[limits]\nmodel_bytes = 2048\n";
  const StatusOr<TrainerConfig> config = ParseTrainerConfig(text, "trainer.toml");

  REQUIRE(config.ok());
  CHECK(config->socket_mode == 0660);
  CHECK(config->output->ends_with("out.log"));
  CHECK(config->output_bytes == 5000);
  CHECK(config->strategy.kind == models::StrategyKind::kMirrored);
  CHECK(config->strategy.replicas == 4);
  CHECK(config->model_bytes == 2048);
}

TEST_CASE("trainer.toml: mistakes are named with their line") {
  struct Case {
    const char* name;
    std::string text;
    const char* says;
  };
  const std::string one = Key("a");
  const std::string minimal = Minimal();
  const auto without = [&](std::string_view line) {
    std::string text = minimal;
    const std::size_t at = text.find(line);
    return text.erase(at, text.find('\n', at) - at + 1);
  };
  const std::string table =
      "[trainer]\nfederation = \"h\"\nsite = \"c\"\nstate = \"s\"\n"
      "socket = \"t\"\ndatasets = [\"d\"]\n";
  const Case cases[] = {
      {"misspelt key", minimal + "aproved = 1\n", "aproved"},
      {"no federation", without("federation"), "federation"},
      {"no approvals", without("approvals"), "approvals"},
      {"no dataset", without("datasets"), "datasets"},
      {"network", minimal + "[sandbox]\nnetwork = \"loopback\"\n", "offers no other"},
      {"mode", minimal + "socket_mode = \"0666\"\n", "socket_mode"},
      {"strategy", minimal + "[compute]\nstrategy = \"gpu\"\n", "strategy"},
      {"replicas of one device", minimal + "[compute]\nreplicas = 2\n", "replicas"},
      {"zero approvals", table + "approvals = 0\napprovers = [\"" + one + "\"]\n", "approvals"},
      {"too few approvers", table + "approvals = 2\napprovers = [\"" + one + "\"]\n", "approvals"},
      {"one person twice",
       table + "approvals = 2\napprovers = [\"" + one + "\", \"" + Key("a") + "\"]\n", "twice"},
      {"no key", table + "approvals = 1\napprovers = [\"hello\"]\n", "approvers"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string error = ErrorOf(c.text);
    CAPTURE(error);
    CHECK(error.find(c.says) != std::string::npos);
    CHECK(error.find("trainer.toml") != std::string::npos);
  }
}

TEST_CASE("trainer.toml: the locked trainer may open its data and its state, and nothing else") {
  StatusOr<TrainerConfig> config = ParseTrainerConfig(Minimal(), "/etc/d/trainer.toml");
  REQUIRE(config.ok());
  contracts::DatasetDescription description;
  description.files = {"/data/a.csv", "/data/b.csv"};

  const std::vector<PathRule> rules = TrainerPaths(*config, {description});

  const std::vector<PathRule> wanted = {{"/etc/d/state", PathAccess::kWrite, true},
                                        {"/data/a.csv", PathAccess::kRead, true},
                                        {"/data/b.csv", PathAccess::kRead, true}};
  CHECK(rules == wanted);
}

}  // namespace domicile::site_agent
