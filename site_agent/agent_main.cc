// domicile-agent: reads its configuration, locks itself out of everything it does not need, works
// until it is asked to stop.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"
#include "contracts/identity.h"
#include "contracts/in_force/policy_keeper.h"
#include "policy/language/parse.h"
#include "site_agent/egress/agent.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/config.h"
#include "site_agent/sandbox/file_reader.h"
#include "site_agent/sandbox/lockdown.h"
#include "wire/tls.h"

namespace domicile::site_agent {
namespace {

constexpr std::uint64_t kLargestConfig = std::uint64_t{1} << 20U;

// What the agent touches from now on. The data is in none of it: opening a data file fails even
// where file modes would allow it.
Lockdown LockdownFor(const AgentConfig& config) {
  const std::vector<PathRule> paths = {
      {.path = config.state, .access = PathAccess::kWrite, .required = true},
      {.path = config.requests, .access = PathAccess::kWrite, .required = true},
      {.path = config.grants, .access = PathAccess::kRead, .required = true},
      {.path = config.trainer_socket, .access = PathAccess::kWrite, .required = false}};
  return AgentLockdown(paths);
}

// The files that are read as long as the agent runs, and their signatures.
std::vector<std::string> PolicyFiles(const AgentConfig& config) {
  std::vector<std::string> files;
  for (const std::string& file : {config.policy, config.federation_policy, config.legal_facts}) {
    files.push_back(file);
    files.push_back(file + ".sig");
  }
  return files;
}

void SayIfUnsigned(const AgentConfig& config) {
  if (config.policy_signers.none) {
    LogWarning(
        "policy_signers = \"none\": policies and legal facts are taken unsigned; whoever can "
        "write the files decides what leaves this site");
  }
}

// What the operator said instead of starting the agent.
struct Orders {
  std::vector<std::string> recover;   // the operator's name
  std::vector<std::string> datasets;  // that only a lost policy had
  std::vector<std::string> confirm;   // `yes`
};

// `domicile site recover`: prints the leaf's fields, and writes it if that is confirmed. Reaches no
// network and starts nothing.
Status Recover(const AgentConfig& config, const contracts::Identity& identity, const Orders& orders,
               const Clock& clock, Random& random) {
  Books::RecoveryOrder order{.operator_name = orders.recover.front(), .datasets = {}};
  for (const std::string& dataset : orders.datasets) {
    ASSIGN_OR_RETURN(order.datasets.emplace_back(), DatasetAlias::Parse(dataset));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(config.policy, contracts::kLargestPolicy));
  ASSIGN_OR_RETURN(const policy::Policy policy,
                   policy::ParsePolicy(text, config.policy, policy::PolicySource::kSite));
  for (const policy::PolicyDataset& dataset : policy.datasets) {
    order.datasets.push_back(dataset.alias);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Books> books,
                   Books::Open(config.state, *identity.log_key, clock, random));
  const bool confirmed = orders.confirm == std::vector<std::string>{"yes"};
  ASSIGN_OR_RETURN(const audit::LogRecovered record,
                   confirmed ? books->Recover(order) : books->PlanRecovery(order));
  ASSIGN_OR_RETURN(const audit::Event event, ToEvent(record));
  Json facts = event.body();
  facts.Set("recovered", confirmed);
  facts.Set("site", identity.Name().name);
  std::printf("%s\n", PrintJson(facts).c_str());
  return OkStatus();
}

Status Run(const std::string& config_path, const Signals& signals, const Orders& orders) {
  const SystemClock clock;
  SystemRandom random;
  RETURN_IF_ERROR(wire::RequireTls13());
  ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path, kLargestConfig));
  ASSIGN_OR_RETURN(AgentConfig config, ParseAgentConfig(text, config_path));
  ASSIGN_OR_RETURN(contracts::Identity identity,
                   contracts::LoadIdentity(config.identity, crypto::Role::kSite, clock.Now()));
  if (!orders.recover.empty()) {
    return Recover(config, identity, orders, clock, random);
  }
  SayIfUnsigned(config);
  for (const std::string& folder : {config.state, config.grants, config.requests}) {
    RETURN_IF_ERROR(CreateFolders(folder));
  }
  // Before the first thread and the first byte from the network.
  ASSIGN_OR_RETURN(const FileReader policy_reader,
                   FileReader::Start(PolicyFiles(config), contracts::kLargestPolicy));
  ASSIGN_OR_RETURN(const SandboxReport sandbox, Apply(LockdownFor(config)));
  LogInfo("locked: " + std::to_string(sandbox.layers.size()) + " walls, landlock version " +
          std::to_string(sandbox.landlock_abi));

  ASSIGN_OR_RETURN(
      const std::unique_ptr<Agent> agent,
      Agent::Open(
          std::move(config), std::move(identity), DOMICILE_VERSION,
          [&policy_reader](const std::string& file) { return policy_reader.Read(file); }, clock,
          random));
  std::stop_source stop;
  std::jthread stopper([&signals, &stop, &agent = *agent](const std::stop_token& done) {
    // A second's pace, so that this thread also ends when the agent ends by itself.
    while (!done.stop_requested()) {
      switch (signals.Wait(std::chrono::seconds(1))) {
        case Signals::Asked::kStop:
          stop.request_stop();
          return;
        case Signals::Asked::kReload:
          agent.AskReload();
          break;
        case Signals::Asked::kNothing:
          break;
      }
    }
  });
  bool told = false;
  return agent->Run(stop.get_token(), [&told] {
    if (!told) {
      told = true;
      std::printf("ready: connected\n");
      std::fflush(stdout);
    }
  });
}

}  // namespace
}  // namespace domicile::site_agent

int main(int argc, char** argv) {
  domicile::site_agent::Orders orders;
  return domicile::RunDaemon(
      {.program = "domicile-agent",
       .log = "agent",
       .description = "The agent of a data site: the only way out, through a policy gate.",
       .version = DOMICILE_VERSION,
       .options = {{"recover", "operator: says what `domicile site recover` would do, and ends",
                    &orders.recover},
                   {"dataset", "with --recover: an alias that the policy does not list",
                    &orders.datasets},
                   {"confirm", "with --recover: `yes` does it", &orders.confirm}}},
      argc, argv, [&orders](const std::string& config, const domicile::Signals& signals) {
        return domicile::site_agent::Run(config, signals, orders);
      });
}
