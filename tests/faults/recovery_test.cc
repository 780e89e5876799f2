// A site whose state was restored from a backup: it sends nothing, `domicile site recover` is the
// way back, what it may have spent is spent, and auditors see it.
#include "audit/recovery.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "audit/records.h"
#include "base/file.h"
#include "base/sqlite.h"
#include "cli/demo/child.h"
#include "tests/faults/running_job.h"
#include "tests/support/run_command.h"

namespace domicile::test {
namespace {

using audit::EventType;

const std::string kSite = "zurich-basel";

void Replace(const std::string& folder, const std::string& with) {
  std::filesystem::remove_all(folder);
  std::filesystem::copy(with, folder, std::filesystem::copy_options::recursive);
}

template <typename T>
T Got(StatusOr<T> value) {
  REQUIRE_MESSAGE(value.ok(), Message(value.status()));
  return *std::move(value);
}

std::int64_t Number(Database& db, std::string_view query) {
  Statement find = Got(db.Prepare(query));
  return Got(find.Step()) ? find.Int(0) : -1;
}

CommandResult Domicile(std::vector<std::string> words) {
  words.insert(words.begin(), ProgramFolder() + "/domicile");
  return Got(RunCommand(words));
}

// A federation whose job is over, and a site of it on which the state of before the job's second
// round lies.
struct RestoredSite {
  RestoredSite() : running(BeginIn(Make({.rounds = 6, .quorum = 3, .deadline_seconds = 3}))) {
    const std::string backup = Path("backup");
    HoldTraining(federation, kSite, 1);
    federation.Kill(AgentOf(kSite));  // a backup as operators make it: of a stopped agent
    std::filesystem::copy(State(), backup, std::filesystem::copy_options::recursive);
    federation.Thaw(TrainerOf(kSite));
    REQUIRE(federation.Start(AgentOf(kSite)).ok());
    REQUIRE(federation.WaitForEnd(running.job).ok());
    LogWatch log(federation.LogOf(kSite));
    REQUIRE(log.WaitFor([](const audit::Leaf& leaf) {
                 return leaf.event.type() == EventType::kUpdateCounted &&
                        leaf.event.Phase().phase == "evaluate";
               })
                .ok());
    federation.Kill(AgentOf(kSite));
    Replace(State(), backup);
  }
  std::string Path(const std::string& name) const { return federation.Folders().Path(name); }
  std::string State() const { return Path("sites/" + kSite + "/state"); }
  std::string Config() const { return Path("sites/" + kSite + "/agent.toml"); }

  // The head that the aggregator remembers, in a file, as an auditor keeps it. Once it has told the
  // site: before, a message of the killed agent may still be under way.
  void LeaveAggregatorsHead() const {
    Database db = Got(Database::Open(federation.LogOf(kAggregator), Database::Mode::kReadOnly));
    Statement find = Got(db.Prepare("SELECT note FROM log_peer_head WHERE origin LIKE ?"));
    find.Bind(1, "%/site/" + kSite + "/log");
    REQUIRE(Got(find.Step()));
    REQUIRE(WriteFileDurably(Path("remembered.head"), AsBytes(find.Text(0))).ok());
  }

  Running running;
  FederationProcesses& federation = *running.federation;
};

// Ends by itself, having sent nothing; returns the last line that it said.
std::string RefusesToRun(RestoredSite& restored) {
  FederationProcesses& federation = restored.federation;
  const std::size_t decided =
      CountLeaves(Got(federation.Leaves(kSite)), IsEvent(EventType::kEgressDecided));
  CHECK(Got(federation.RunToExit(AgentOf(kSite))) == 3);
  CHECK(CountLeaves(Got(federation.Leaves(kSite)), IsEvent(EventType::kEgressDecided)) == decided);
  return federation.LastLine(AgentOf(kSite));
}

// Whether a state that `recover` was killed over is recovered; it is that, or as before.
bool IsRecovered(const std::string& state, std::int64_t instance_before) {
  Database db = Got(Database::Open(state + "/agent.db", Database::Mode::kCreate));
  const std::int64_t entries = Number(
      db, "SELECT count(*) FROM log_leaf WHERE instr(CAST(bytes AS TEXT), '\"log.recovered\"')");
  const std::int64_t answered = Number(db, "SELECT count(*) FROM behind WHERE leaf IS NOT NULL");
  const std::int64_t spent = Number(db, "SELECT count(*) FROM spent");
  const std::int64_t instance = Number(db, "SELECT instance FROM life");
  CHECK((entries == 0 || entries == 1));
  CHECK(answered == entries);
  CHECK(spent == entries);  // the example has one dataset
  CHECK(Number(db, "SELECT count(*) FROM behind") == 1);
  CHECK((entries == 0 || instance > instance_before));
  return entries == 1;
}

}  // namespace

TEST_CASE(
    "Recovery: a restored site is silent until its operator says, then it is back and spent") {
  RestoredSite restored;
  FederationProcesses& federation = restored.federation;

  const std::string first = RefusesToRun(restored);
  CHECK_MESSAGE(first.find("domicile site recover") != std::string::npos, first);
  restored.LeaveAggregatorsHead();
  // It has seen the head and does not ask again.
  const std::size_t starts =
      CountLeaves(Got(federation.Leaves(kSite)), IsEvent(EventType::kAgentStarted));
  CHECK(RefusesToRun(restored) == first);
  CHECK(CountLeaves(Got(federation.Leaves(kSite)), IsEvent(EventType::kAgentStarted)) == starts);

  const CommandResult unsure =
      Domicile({"site", "recover", "--config", restored.Config(), "--operator", "ada"});
  CHECK(unsure.code == 2);
  CHECK(unsure.err.find("--yes") != std::string::npos);
  const CommandResult done = Domicile(
      {"site", "recover", "--config", restored.Config(), "--operator", "ada", "--yes", "--json"});
  REQUIRE_MESSAGE(done.code == 0, done.err);
  const auto facts = nlohmann::json::parse(done.out);
  CHECK(facts["recovered"] == true);
  CHECK(facts["operator"] == "ada");
  CHECK(facts["datasets"] == nlohmann::json::array({"heart"}));
  CHECK(Domicile({"site", "recover", "--config", restored.Config(), "--operator", "ada", "--yes"})
            .code == 3);

  const Status connected = federation.Start(AgentOf(kSite));
  REQUIRE_MESSAGE(connected.ok(), Message(connected));
  const StatusOr<JobId> job = federation.Submit();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  LogWatch log(federation.LogOf(kSite));
  const audit::Leaf declined = Got(log.WaitFor([&](const audit::Leaf& leaf) {
    return leaf.event.type() == EventType::kOfferDeclined && leaf.event.Text("job") == job->text();
  }));
  const auto reasons =
      nlohmann::json::parse(PrintJson(declined.event.body()))["decision"]["reasons"];
  CHECK_MESSAGE(reasons.dump().find("LIMIT-RELEASED-NUMBERS") != std::string::npos, reasons.dump());

  federation.StopAll();
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
  const auto aggregator = Got(federation.Leaves(kAggregator));
  CHECK(CountLeaves(aggregator, IsEvent(EventType::kHeadRecovered)) == 1);
  const CommandResult verified =
      Domicile({"audit", "verify", federation.LogOf(kSite), "--head",
                restored.Path("remembered.head"), "--key", federation.Folders().LogKeyFile(kSite)});
  CHECK_MESSAGE(verified.code == 0, verified.out);
  CHECK(verified.out.find("recovered entry") != std::string::npos);
  const CommandResult reconciled =
      Domicile({"audit", "reconcile", federation.LogOf(kSite), federation.LogOf(kAggregator)});
  CHECK_MESSAGE(reconciled.code == 0, reconciled.out);
  CHECK(reconciled.out.find("of before are lost") != std::string::npos);
}

TEST_CASE("Recovery: killed at any instant, the site is as before or recovered") {
  RestoredSite restored;
  RefusesToRun(restored);
  restored.federation.StopAll();
  const std::string behind = restored.Path("behind");
  std::filesystem::copy(restored.State(), behind, std::filesystem::copy_options::recursive);
  std::int64_t instance = 0;
  {
    Database db = Got(Database::Open(behind + "/agent.db", Database::Mode::kReadOnly));
    instance = Number(db, "SELECT instance FROM life");
  }
  const std::vector<std::string> command = {ProgramFolder() + "/domicile-agent",
                                            "--config",
                                            restored.Config(),
                                            "--recover",
                                            "ada",
                                            "--confirm",
                                            "yes"};

  // Undisturbed, for as long as that takes here.
  Replace(restored.State(), behind);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(Got(cli::Child::Start(command, restored.Path("recover.log"))).Wait() == 0);
  const std::chrono::nanoseconds whole = std::chrono::steady_clock::now() - begin;
  CHECK(IsRecovered(restored.State(), instance));

  std::array<int, 2> seen{};
  constexpr int kKills = 50;
  for (int i = 0; i < kKills; ++i) {
    CAPTURE(i);
    Replace(restored.State(), behind);
    cli::Child child = Got(cli::Child::Start(command, restored.Path("recover.log")));
    std::this_thread::sleep_for(whole * i / kKills);
    kill(child.pid(), SIGKILL);
    child.Wait();
    seen.at(IsRecovered(restored.State(), instance) ? 1 : 0) += 1;
  }
  MESSAGE("killed before: " << seen[0] << ", after: " << seen[1]);
  CHECK(seen[0] > 0);
}

}  // namespace domicile::test
