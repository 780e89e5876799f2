#include "site_agent/trainer/config.h"

#include <string>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::site_agent {
namespace {

std::string Key(std::string_view name) {
  SystemRandom random;
  return crypto::NoteSigner::Generate(name, random, crypto::NoteKeyKind::kCosigner)
      ->Verifier()
      .Print();
}

std::string Approver(std::string_view role, const std::string& key) {
  return "[[approver]]\nrole = \"" + std::string(role) +
         "\"\norganisation = \"charite\"\nkey = \"" + key + "\"\n";
}

// `more` goes into [trainer].
std::string Minimal(const std::string& more = "") {
  return "[trainer]\nfederation = \"heart\"\nsite = \"charite\"\nstate = \"state\"\n"
         "socket = \"/run/t.sock\"\ndatasets = [\"d.toml\"]\napprovals = 1\n" +
         more + Approver("dpo", Key("a"));
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
  CHECK_FALSE(config->checkpoint_steps.has_value());  // after each epoch
  CHECK(ParseTrainerConfig(Minimal() + "[compute]\ncheckpoint_steps = 0\n", "trainer.toml")
            ->checkpoint_steps == 0);
}

TEST_CASE("trainer.toml: a device may be a GPU, whose products have the precision") {
  const auto parse = [](const std::string& compute) {
    return ParseTrainerConfig(Minimal() + "[compute]\n" + compute, "/etc/d/trainer.toml");
  };
  const auto config = parse(
      "strategy = \"mirrored\"\nreplicas = 2\nprecision = \"bfloat16\"\ndevice = \"cuda\"\n"
      "first_gpu = 3\ngpu_plugin = \"gpu.so\"\n");
  REQUIRE(config.ok());
  REQUIRE(config->gpu.has_value());
  CHECK(config->gpu->library == "/etc/d/gpu.so");
  CHECK(config->gpu->ordinal == 3);
  CHECK(config->gpu->products == models::cuda::Products::kBfloat16);
  const auto device = config->strategy.make_device(1);
  REQUIRE(!device.ok());
  CHECK(std::string(Message(device.status())).find("`/etc/d/gpu.so`") != std::string::npos);

  const auto cpu = parse("device = \"cpu\"\n");
  REQUIRE(cpu.ok());
  CHECK_FALSE(cpu->gpu.has_value());
  CHECK_FALSE(cpu->strategy.make_device);
  for (const char* wrong : {"device = \"gpu\"\n", "first_gpu = 1\n", "gpu_plugin = \"a.so\"\n"}) {
    CAPTURE(wrong);
    const auto refused = parse(wrong);
    REQUIRE(!refused.ok());
    CHECK(std::string(Message(refused.status())).find("cuda") != std::string::npos);
  }
}

TEST_CASE("trainer.toml: every key is read") {
  const std::string text = Minimal(
                               "socket_mode = \"0660\"\noutput = \"out.log\"\n"
                               "output_bytes = 5000\ndenials = \"../grants\"\n"
                               "approval_max_age = \"30d\"\n") +
                           "[[approval]]\nrole = \"dpo\"\n"
                           "[compute]\nstrategy = \"mirrored\"\nthreads = 3\nreplicas = 4\n"
                           "micro_batch = 16\ninput_memory_bytes = 1000\ncheckpoint_steps = "
                           "50\nprecision = \"bfloat16\"\n"
                           "pretrained = [\"m.safetensors\"]\nvocabularies = [\"/v/vocab.txt\"]\n"
                           "[sandbox]\nnetwork = \"none\"\n[limits]\nmodel_bytes = 2048\n";
  const StatusOr<TrainerConfig> config = ParseTrainerConfig(text, "trainer.toml");

  REQUIRE(config.ok());
  CHECK(config->socket_mode == 0660);
  CHECK(config->output->ends_with("out.log"));
  CHECK(config->output_bytes == 5000);
  CHECK(config->strategy.kind == models::StrategyKind::kMirrored);
  CHECK(config->strategy.replicas == 4);
  CHECK(config->micro_batch == 16);
  CHECK(config->checkpoint_steps == 50);
  CHECK(config->input_memory_bytes == 1000);
  CHECK(config->precision == models::Precision::kBfloat16);
  REQUIRE(config->pretrained.size() == 1);
  CHECK(config->pretrained[0].ends_with("m.safetensors"));
  CHECK(config->vocabularies == std::vector<std::string>{"/v/vocab.txt"});
  CHECK(config->model_bytes == 2048);
  CHECK(config->denials.ends_with("/grants"));
  REQUIRE(config->approval.approvers.size() == 1);
  CHECK(config->approval.approvers[0].role == policy::ApprovalRole::kDpo);
  CHECK(config->approval.approvers[0].organisation == "charite");
  CHECK(config->approval.max_age == std::chrono::days(30));
  CHECK(config->approval.needs ==
        std::vector<contracts::ApprovalNeed>{
            {.role = policy::ApprovalRole::kDpo, .count = 1, .distinct_org = false}});
}

TEST_CASE("trainer.toml: every strategy is read") {
  const auto strategy = [](const std::string& compute) {
    const StatusOr<TrainerConfig> config =
        ParseTrainerConfig(Minimal() + "[compute]\n" + compute, "trainer.toml");
    INFO(ToString(config.status()));
    REQUIRE(config.ok());
    return config->strategy;
  };
  CHECK(strategy("strategy = \"central_storage\"\nreplicas = 3\n").kind ==
        models::StrategyKind::kCentralStorage);
  const models::StrategySpec servers =
      strategy("strategy = \"parameter_server\"\nservers = 3\nstaleness = 4\n");
  CHECK(servers.kind == models::StrategyKind::kParameterServer);
  CHECK(servers.replicas == 2);
  CHECK(servers.patience == std::chrono::seconds(30));
  CHECK(strategy("strategy = \"mirrored\"\nsilence_seconds = 600\n").patience ==
        std::chrono::minutes(10));
  CHECK(servers.servers == 3);
  CHECK(servers.staleness == 4);
}

TEST_CASE("trainer.toml: mistakes are named with their line") {
  struct Case {
    const char* name;
    std::string text;
    const char* says;
  };
  const std::string one = Key("a");
  SystemRandom random;
  const std::string plain = crypto::NoteSigner::Generate("b", random)->Verifier().Print();
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
      {"misspelt key", Minimal("aproved = 1\n"), "aproved"},
      {"no federation", without("federation"), "federation"},
      {"no approvals", without("approvals"), "approvals"},
      {"no dataset", without("datasets"), "datasets"},
      {"network", minimal + "[sandbox]\nnetwork = \"site_cluster\"\n",
       "must be \"none\" or \"loopback\""},
      {"mode", Minimal("socket_mode = \"0666\"\n"), "socket_mode"},
      {"strategy", minimal + "[compute]\nstrategy = \"gpu\"\n", "strategy"},
      {"replicas of one device", minimal + "[compute]\nreplicas = 2\n", "replicas"},
      {"silence of one device", minimal + "[compute]\nsilence_seconds = 20\n", "silence_seconds"},
      {"servers of mirrored", minimal + "[compute]\nstrategy = \"mirrored\"\nservers = 2\n",
       "compute.servers"},
      {"checkpoints of many at once",
       minimal + "[compute]\nstrategy = \"parameter_server\"\ncheckpoint_steps = 5\n",
       "compute.checkpoint_steps"},
      {"a part of a step", minimal + "[compute]\ncheckpoint_steps = 0.5\n",
       "compute.checkpoint_steps"},
      {"steps back", minimal + "[compute]\ncheckpoint_steps = -1\n", "compute.checkpoint_steps"},
      {"precision", minimal + "[compute]\nprecision = \"int8\"\n", "compute.precision"},
      {"zero approvals", table + "approvals = 0\n" + Approver("dpo", one), "approvals"},
      {"too few approvers", table + "approvals = 2\n" + Approver("dpo", one), "approvals"},
      {"one person twice", minimal + Approver("operator", Key("a")), "twice"},
      {"no key", minimal + Approver("operator", "hello"), "approver[1].key"},
      {"a key that does not say when", minimal + Approver("operator", plain),
       "domicile ca approver"},
      {"no such role", minimal + Approver("boss", Key("b")), "ethics_board"},
      {"house",
       minimal + "[[approver]]\nrole = \"dpo\"\norganisation = \"a b\"\nkey = \"" + Key("b") +
           "\"\n",
       "organisation"},
      {"a need nobody can meet", minimal + "[[approval]]\nrole = \"dpo\"\ncount = 2\n",
       "more often"},
      {"age", Minimal("approval_max_age = \"soon\"\n"), "approval_max_age"},
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
  config->pretrained = {"/data/m.safetensors"};
  config->vocabularies = {"/data/vocab.txt"};
  contracts::DatasetDescription description;
  description.files = {"/data/a.csv", "/data/b.csv"};

  const std::vector<PathRule> rules = TrainerPaths(*config, {description});

  const std::vector<PathRule> wanted = {{"/etc/d/state", PathAccess::kWrite, true},
                                        {"/data/m.safetensors", PathAccess::kRead, true},
                                        {"/data/vocab.txt", PathAccess::kRead, true},
                                        {"/data/a.csv", PathAccess::kRead, true},
                                        {"/data/b.csv", PathAccess::kRead, true}};
  CHECK(rules == wanted);
}

}  // namespace domicile::site_agent
