// What a person gets wrong, one thing at a time: a program says it in one sentence with what to do,
// exits with 2 (wrong input) or 3 (could not), and changes nothing.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/sqlite.h"
#include "cli/demo/child.h"
#include "tests/support/federation_processes.h"
#include "tests/support/run_command.h"

namespace domicile::test {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{64} << 20U;

// A federation on disk, made once, and copied for each thing that is got wrong.
const FederationProcesses& Pattern() {
  static const auto pattern = FederationProcesses::Create();
  REQUIRE_MESSAGE(pattern.ok(), Message(pattern.status()));
  return **pattern;
}

class Copy {
 public:
  Copy() {
    std::filesystem::copy(Pattern().Folders().Folder(), folder_.In("f"),
                          std::filesystem::copy_options::recursive);
  }
  std::string In(const std::string& name) const { return folder_.In("f/" + name); }
  void Change(const std::string& file, const std::string& from, const std::string& to) const {
    auto text = ReadFile(In(file), kLargest);
    REQUIRE(text.ok());
    const std::size_t at = text->find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    REQUIRE(WriteFileDurably(In(file), AsBytes(text->replace(at, from.size(), to))).ok());
  }
  // Every file of the folder and its bytes.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.Path())) {
      if (entry.is_regular_file()) {
        files[entry.path().string()] = ReadFile(entry.path().string(), kLargest).value_or("");
      }
    }
    return files;
  }

 private:
  TemporaryFolder folder_;
};

const std::string kAggregatorConfig = "aggregator/aggregator.toml";
const std::string kAgentConfig = "sites/budapest/agent.toml";
const std::string kTrainerConfig = "sites/budapest/trainer/trainer.toml";

struct Case {
  std::string name;
  std::string program;
  std::string config;
  std::function<void(const Copy&)> wrong;
  int code = 0;
  std::string says;  // part of the sentence
};

std::vector<Case> WrongFiles() {
  return {
      {"aggregator, unknown key", "domicile-aggregator", kAggregatorConfig,
       [](const Copy& copy) { copy.Change(kAggregatorConfig, "listen =", "listn ="); }, 2,
       "is `listn` meant?"},
      {"aggregator, a key of nothing", "domicile-aggregator", kAggregatorConfig,
       [](const Copy& copy) { copy.Change(kAggregatorConfig, "listen =", "colour = 1\nlisten ="); },
       2, "colour"},
      {"agent, unknown key", "domicile-agent", kAgentConfig,
       [](const Copy& copy) { copy.Change(kAgentConfig, "aggregator =", "agregator ="); }, 2,
       "is `agregator` meant?"},
      {"trainer, unknown key", "domicile-trainer", kTrainerConfig,
       [](const Copy& copy) { copy.Change(kTrainerConfig, "approvals =", "aprovals ="); }, 2,
       "is `aprovals` meant?"},
      {"aggregator, no configuration", "domicile-aggregator", "aggregator/missing.toml",
       [](const Copy&) {}, 3, "missing.toml"},
      {"aggregator, no policy", "domicile-aggregator", kAggregatorConfig,
       [](const Copy& copy) {
         REQUIRE(RemoveFile(copy.In("aggregator/federation.policy.toml")).ok());
       },
       3, "federation.policy.toml"},
      {"agent, no policy", "domicile-agent", kAgentConfig,
       [](const Copy& copy) {
         REQUIRE(RemoveFile(copy.In("sites/budapest/site.policy.toml")).ok());
       },
       3, "site.policy.toml"},
      {"trainer, no data", "domicile-trainer", kTrainerConfig,
       [](const Copy& copy) {
         REQUIRE(RemoveFile(copy.In("sites/budapest/data/dataset.toml")).ok());
       },
       2, "dataset.toml"},
  };
}

std::vector<Case> WrongParties() {
  return {
      {"aggregator with a site's identity", "domicile-aggregator", kAggregatorConfig,
       [](const Copy& copy) {
         copy.Change(kAggregatorConfig, "\"identity\"", "\"../sites/budapest/identity\"");
       },
       2, "is of the site `budapest`"},
      {"agent with the aggregator's identity", "domicile-agent", kAgentConfig,
       [](const Copy& copy) {
         copy.Change(kAgentConfig, "\"identity\"", "\"../../aggregator/identity\"");
       },
       2, "is of the aggregator `main`"},
      {"agent with another site's identity", "domicile-agent", kAgentConfig,
       [](const Copy& copy) {
         copy.Change(kAgentConfig, "\"identity\"", "\"../cleveland/identity\"");
       },
       2, "US-OH"},
      {"agent, a key that others may read", "domicile-agent", kAgentConfig,
       [](const Copy& copy) {
         REQUIRE(chmod(copy.In("sites/budapest/identity/tls.key").c_str(), 0644) == 0);
       },
       3, "tls.key"},
      {"aggregator, a database of a newer version", "domicile-aggregator", kAggregatorConfig,
       [](const Copy& copy) {
         REQUIRE(CreateFolders(copy.In("aggregator/state")).ok());
         auto db =
             Database::Open(copy.In("aggregator/state/aggregator.db"), Database::Mode::kCreate);
         REQUIRE(db.ok());
         REQUIRE(db->Execute("CREATE TABLE t (a INTEGER) STRICT; PRAGMA user_version = 99; "
                             "PRAGMA application_id = 1")
                     .ok());
       },
       3, "aggregator.db"},
  };
}

// How many lines begin with the program's name: what it says when it gives up.
std::size_t Sentences(const std::string& err, const std::string& program) {
  std::size_t count = err.starts_with(program + ": ") ? 1 : 0;
  for (std::size_t at = err.find("\n" + program + ": "); at != std::string::npos;
       at = err.find("\n" + program + ": ", at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("Bad input: one sentence, the right exit code, and nothing is changed") {
  std::vector<Case> cases = WrongFiles();
  const std::vector<Case> parties = WrongParties();
  cases.insert(cases.end(), parties.begin(), parties.end());
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Copy copy;
    c.wrong(copy);
    const auto before = copy.Files();

    const auto result = RunCommand(
        {"timeout", "30", ProgramFolder() + "/" + c.program, "--config", copy.In(c.config)});
    REQUIRE(result.ok());

    CHECK_MESSAGE(result->code == c.code, result->err);
    CHECK_MESSAGE(Sentences(result->err, c.program) == 1, result->err);
    CHECK_MESSAGE(result->err.find(c.says) != std::string::npos, result->err);
    CHECK(result->out.find("ready") == std::string::npos);
    for (const auto& [file, text] : before) {
      CAPTURE(file);
      CHECK(ReadFile(file, kLargest).value_or("") == text);
    }
  }
}

TEST_CASE("Bad input: the same programs without the mistake start") {
  auto made = FederationProcesses::Create();
  REQUIRE(made.ok());

  const Status started = (*made)->StartAll();

  CHECK_MESSAGE(started.ok(), Message(started));
}

TEST_CASE("Bad input: a port that another program has is named") {
  auto made = FederationProcesses::Create();
  REQUIRE(made.ok());
  FederationProcesses& federation = **made;
  REQUIRE(federation.Start(std::string(kAggregator)).ok());
  const Copy copy;
  const std::string address = federation.Folders().Address();
  copy.Change(kAggregatorConfig, Pattern().Folders().Address(), address);

  const auto result = RunCommand({"timeout", "30", ProgramFolder() + "/domicile-aggregator",
                                  "--config", copy.In(kAggregatorConfig)});
  REQUIRE(result.ok());

  CHECK(result->code == 3);
  CHECK_MESSAGE(Sentences(result->err, "domicile-aggregator") == 1, result->err);
  CHECK_MESSAGE(result->err.find(address) != std::string::npos, result->err);
}

TEST_CASE("Bad input: an agent of another federation is not let in and says why it waits") {
  auto made = FederationProcesses::Create();
  REQUIRE(made.ok());
  FederationProcesses& federation = **made;
  REQUIRE(federation.Start(std::string(kAggregator)).ok());
  REQUIRE(federation.Start(TrainerOf("budapest")).ok());
  // All of it is in order, but its authority is another one.
  const std::string identity = federation.Folders().Path("sites/budapest/identity");
  std::filesystem::remove_all(identity);
  std::filesystem::copy(Pattern().Folders().Path("sites/budapest/identity"), identity);

  {
    const std::string output = federation.Folders().Path("sites/budapest/output.log");
    auto agent = cli::Child::Start(
        {ProgramFolder() + "/domicile-agent", "--config", federation.Folders().Path(kAgentConfig)},
        output);
    REQUIRE(agent.ok());
    const auto until = std::chrono::steady_clock::now() + kSoon;
    std::string said;
    while (said.find("trying again: ") == std::string::npos &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      said = ReadFile(output, kLargest).value_or("");
    }
    CHECK_MESSAGE(said.find("trying again: ") != std::string::npos, said);
    CHECK_MESSAGE(said.find("certificate") != std::string::npos, said);
    CHECK(kill(agent->pid(), SIGKILL) == 0);
  }
  federation.StopAll();

  const auto leaves = federation.Leaves(kAggregator);
  REQUIRE(leaves.ok());
  CHECK(CountLeaves(*leaves, IsEvent(audit::EventType::kPeerConnected)) == 0);
}

TEST_CASE("Bad input: the command line says what was wrong, with the right exit code") {
  const std::string person = Pattern().Folders().OperatorIdentity();
  const std::string site = Pattern().Folders().Path("sites/budapest/identity");
  const std::string nobody = "127.0.0.1:1";  // nothing listens on this port
  struct Command {
    std::string name;
    std::vector<std::string> arguments;
    int code = 0;
    std::string says;
  };
  const Command commands[] = {
      {"nobody there", {"job", "list", "--aggregator", nobody, "--identity", person}, 3, nobody},
      {"a site's identity",
       {"job", "list", "--aggregator", nobody, "--identity", site},
       3,
       "is of the site `budapest`"},
      {"no job file",
       {"job", "submit", "/no/job.toml", "--aggregator", nobody, "--identity", person},
       3,
       "/no/job.toml"},
      {"no aggregator named", {"job", "list", "--identity", person}, 2, "--aggregator"},
      {"no log", {"audit", "verify", "/no/agent.db"}, 3, "/no/agent.db"},
      {"too many rounds", {"demo", "--rounds", "101"}, 2, "--rounds"},
      {"no such case", {"demo", "--case", "lungs"}, 2, "`lungs`"},
      {"not a policy",
       {"policy", "check", Pattern().Folders().Path("ca/roster.pub")},
       2,
       "roster.pub:1"},
  };
  for (const Command& c : commands) {
    CAPTURE(c.name);
    std::vector<std::string> command = {"timeout", "30", ProgramFolder() + "/domicile"};
    command.insert(command.end(), c.arguments.begin(), c.arguments.end());

    const auto result = RunCommand(command);
    REQUIRE(result.ok());

    CHECK_MESSAGE(result->code == c.code, result->err);
    CHECK_MESSAGE(result->err.find(c.says) != std::string::npos, result->err);
    CHECK(result->out.empty());
  }
}

}  // namespace domicile::test
