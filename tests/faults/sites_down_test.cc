// Sites that are dead for a while or for good: the round goes on at its deadline, whoever comes
// back joins the next round, and a job that cannot go on ends by itself. And sites that come back
// as what they were: a restored backup, a second copy.
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "base/file.h"
#include "base/sqlite.h"
#include "tests/faults/running_job.h"

namespace domicile::test {
namespace {

using audit::EventType;
using audit::PhaseKey;

const std::string kDead = "zurich-basel";
const std::string kSlow = "budapest";

Running Begin(const FederationJob& options) { return BeginIn(Make(options)); }

std::set<std::string> Contributors(const audit::PhaseCommitted& commit) {
  std::set<std::string> sites;
  for (const audit::Contributor& contributor : commit.contributors) {
    sites.insert(contributor.site.text());
  }
  return sites;
}

std::chrono::nanoseconds Between(const audit::Leaf& first, const audit::Leaf& second) {
  return second.frame.time - first.frame.time;
}

// How much of its deadline the aggregator has written down as passed.
std::int64_t StoredWait(const FederationProcesses& federation) {
  auto db = Database::Open(federation.LogOf(kAggregator), Database::Mode::kReadOnly);
  REQUIRE(db.ok());
  auto find = db->Prepare("SELECT seconds FROM wait");
  REQUIRE(find.ok());
  const StatusOr<bool> found = find->Step();
  REQUIRE(found.ok());
  return *found ? find->Int(0) : 0;
}

}  // namespace

TEST_CASE("Sites down: a round closes at its deadline, and the site is back in a later one") {
  constexpr std::uint32_t kDeadline = 3;
  Running running = Begin({.rounds = 8, .quorum = 3, .deadline_seconds = kDeadline, .attempts = 5});
  FederationProcesses& federation = *running.federation;

  // One site dies inside train; the others have answered. Another is slow in the round after, so
  // that the dead one is back before the job is over.
  const PhaseKey held = HoldTraining(federation, kDead, 2);
  LogWatch log(federation.LogOf(kAggregator));
  const auto opened = log.WaitFor(IsEvent(EventType::kPhaseOpened, held));
  REQUIRE(opened.ok());
  for (int others = 0; others < 3; ++others) {
    REQUIRE(log.WaitFor(IsEvent(EventType::kIngressReceived, held)).ok());
  }
  federation.Freeze(TrainerOf(kSlow));
  federation.Kill(AgentOf(kDead));
  federation.Thaw(TrainerOf(kDead));
  const auto committed = log.WaitFor(IsEvent(EventType::kPhaseCommitted, held));
  REQUIRE_MESSAGE(committed.ok(), Message(committed.status()));
  const Status back = federation.Start(AgentOf(kDead));
  REQUIRE_MESSAGE(back.ok(), Message(back));
  federation.Thaw(TrainerOf(kSlow));
  const auto ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  const Status told = federation.WaitForOutcomes(
      {.job = running.job, .round = 8, .phase = "evaluate", .epoch = {}});
  CHECK_MESSAGE(told.ok(), Message(told));
  federation.StopAll();

  CHECK(Between(*opened, *committed) >= std::chrono::seconds(kDeadline));
  CHECK(Between(*opened, *committed) < std::chrono::seconds(kDeadline + 7));
  CHECK(ended->event.Text("state") == "done");
  const auto commits = federation.Commits();
  REQUIRE(commits.ok());
  for (const audit::PhaseCommitted& commit : *commits) {
    CAPTURE(commit.key.round);
    if (SamePhase(commit.key, held)) {
      CHECK_FALSE(Contributors(commit).contains(kDead));
      CHECK(commit.contributors.size() == 3);
    } else if (commit.key.round < held.round || commit.key.round > held.round + 1) {
      CHECK(commit.contributors.size() == 4);
    }
  }
  const auto leaves = federation.Leaves(kAggregator);
  REQUIRE(leaves.ok());
  CHECK(CountLeaves(*leaves, IsEvent(EventType::kAggregatorStarted)) == 1);
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

TEST_CASE("Sites down: an aggregator that is killed while it waits does not begin to wait anew") {
  constexpr std::uint32_t kDeadline = 8;
  constexpr std::int64_t kWaited = 4;
  Running running = Begin({.rounds = 3, .quorum = 3, .deadline_seconds = kDeadline, .attempts = 9});
  FederationProcesses& federation = *running.federation;
  const PhaseKey held = HoldTraining(federation, kDead, 1);
  {
    LogWatch log(federation.LogOf(kAggregator));
    for (int others = 0; others < 3; ++others) {
      REQUIRE(log.WaitFor(IsEvent(EventType::kIngressReceived, held)).ok());
    }
  }
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (StoredWait(federation) < kWaited) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  federation.Kill(std::string(kAggregator));
  const Status again = federation.Start(std::string(kAggregator));
  REQUIRE_MESSAGE(again.ok(), Message(again));
  LogWatch log(federation.LogOf(kAggregator));
  const auto first = log.WaitFor(IsEvent(EventType::kPhaseOpened, held));
  const auto reopened = log.WaitFor(IsEvent(EventType::kPhaseOpened, held));
  REQUIRE_MESSAGE(reopened.ok(), Message(reopened.status()));
  // With those that have come back in time: on a busy machine perhaps too few.
  const auto closed = log.WaitFor([&](const audit::Leaf& leaf) {
    return IsEvent(EventType::kPhaseCommitted, held)(leaf) ||
           IsEvent(EventType::kPhaseAbandoned, held)(leaf);
  });
  REQUIRE_MESSAGE(closed.ok(), Message(closed.status()));
  federation.Thaw(TrainerOf(kDead));
  const auto ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();

  CHECK(first->event.Int("deadline_seconds") == kDeadline);
  CHECK(reopened->event.Int("deadline_seconds") <= kDeadline - kWaited);
  CHECK(Between(*reopened, *closed) < std::chrono::seconds(kDeadline));
  CHECK(ended->event.Text("state") == "done");
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

TEST_CASE("Sites down: with all agents dead the job ends by itself") {
  constexpr std::uint32_t kDeadline = 2;
  constexpr std::uint32_t kAttempts = 2;
  Running running =
      Begin({.rounds = 6, .quorum = 3, .deadline_seconds = kDeadline, .attempts = kAttempts});
  FederationProcesses& federation = *running.federation;

  const PhaseKey held = HoldTraining(federation, kDead, 1);
  LogWatch log(federation.LogOf(kAggregator));
  const auto opened = log.WaitFor(IsEvent(EventType::kPhaseOpened, held));
  REQUIRE(opened.ok());
  for (int others = 0; others < 3; ++others) {
    REQUIRE(log.WaitFor(IsEvent(EventType::kIngressReceived, held)).ok());
  }
  for (const cli::DemoSite& site : cli::HeartSites()) {
    federation.Kill(AgentOf(site.name));
  }
  const auto ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();

  // The round is committed with what three have sent; for the next one nobody comes.
  CHECK(ended->event.Text("state") == "failed");
  CHECK(ended->event.Text("reason") == "TOO-FEW-SITES");
  CHECK(Between(*opened, *ended) >= std::chrono::seconds((kAttempts + 1) * kDeadline));
  CHECK(Between(*opened, *ended) < std::chrono::seconds((kAttempts + 1) * kDeadline + 7));
  const auto commits = federation.Commits();
  REQUIRE(commits.ok());
  REQUIRE_FALSE(commits->empty());
  CHECK(SamePhase(commits->back().key, held));
  CHECK(commits->back().contributors.size() == 3);
  CHECK(ended->event.Text("model") == PrintHex(commits->back().model));
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

TEST_CASE("Sites down: an agent restored from a backup sends nothing and says why") {
  Running running = Begin({.rounds = 6, .quorum = 3, .deadline_seconds = 3, .attempts = 5});
  FederationProcesses& federation = *running.federation;
  const std::string state = federation.Folders().Path("sites/" + kDead + "/state");
  const std::string backup = federation.Folders().Path("backup");

  // A backup as operators make it: of a stopped agent.
  HoldTraining(federation, kDead, 1);
  federation.Kill(AgentOf(kDead));
  std::filesystem::copy(state, backup, std::filesystem::copy_options::recursive);
  federation.Thaw(TrainerOf(kDead));
  REQUIRE(federation.Start(AgentOf(kDead)).ok());
  REQUIRE(federation.WaitForEnd(running.job).ok());
  LogWatch log(federation.LogOf(kDead));
  REQUIRE(log.WaitFor([](const audit::Leaf& leaf) {
               return leaf.event.type() == EventType::kUpdateCounted &&
                      leaf.event.Phase().phase == "evaluate";
             })
              .ok());
  federation.Kill(AgentOf(kDead));
  std::filesystem::remove_all(state);
  std::filesystem::copy(backup, state, std::filesystem::copy_options::recursive);
  const auto before = federation.Leaves(kDead);
  REQUIRE(before.ok());

  const StatusOr<int> code = federation.RunToExit(AgentOf(kDead));
  REQUIRE_MESSAGE(code.ok(), Message(code.status()));
  federation.StopAll();

  CHECK(*code == 3);
  const std::string said = federation.LastLine(AgentOf(kDead));
  CHECK_MESSAGE(said.starts_with("domicile-agent: this site's own log is not the one"), said);
  const auto after = federation.Leaves(kDead);
  REQUIRE(after.ok());
  for (const EventType sent : {EventType::kEgressDecided, EventType::kEgressIntent}) {
    CHECK(CountLeaves(*after, IsEvent(sent)) == CountLeaves(*before, IsEvent(sent)));
  }
}

TEST_CASE("Sites down: a second copy of an agent is refused, and the first goes on") {
  Running running = Begin({.rounds = 6, .quorum = 4});
  FederationProcesses& federation = *running.federation;
  HoldTraining(federation, kSlow, 1);  // so that the job is not over too soon
  const std::string site = federation.Folders().Path("sites/" + kDead);
  const std::string copy = federation.Folders().Path("sites/copy");
  // A standby machine: the site's identity and configuration, books of its own.
  std::filesystem::create_directory(copy);
  for (const char* name :
       {"identity", "grants", "requests", "agent.toml", "site.policy.toml", "site.policy.toml.sig",
        "federation.policy.toml", "federation.policy.toml.sig", "legal-facts.toml",
        "legal-facts.toml.sig"}) {
    std::filesystem::copy(JoinPath(site, name), JoinPath(copy, name),
                          std::filesystem::copy_options::recursive);
  }
  std::filesystem::create_directory_symlink("../" + kDead + "/trainer", copy + "/trainer");
  // The real one has been started again since: its instance number is higher.
  federation.Kill(AgentOf(kDead));
  REQUIRE(federation.Start(AgentOf(kDead)).ok());

  const StatusOr<int> code = federation.RunToExit("agent/copy");
  REQUIRE_MESSAGE(code.ok(), Message(code.status()));
  federation.Thaw(TrainerOf(kSlow));
  const auto ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  const Status told = federation.WaitForOutcomes(
      {.job = running.job, .round = 6, .phase = "evaluate", .epoch = {}});
  CHECK_MESSAGE(told.ok(), Message(told));
  federation.StopAll();

  CHECK(*code == 3);
  const std::string said = federation.LastLine("agent/copy");
  CHECK_MESSAGE(said.find("INSTANCE") != std::string::npos, said);
  CHECK(ended->event.Text("state") == "done");
  const auto copied = federation.Leaves("copy");
  REQUIRE(copied.ok());
  CHECK(CountLeaves(*copied, IsEvent(EventType::kAgentStarted)) == 1);
  CHECK(CountLeaves(*copied, IsEvent(EventType::kEgressDecided)) == 0);
  const auto leaves = federation.Leaves(kAggregator);
  REQUIRE(leaves.ok());
  CHECK(CountLeaves(*leaves, IsEvent(EventType::kInstanceConflict)) == 1);
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

}  // namespace domicile::test
