// `kill -9` of each program at instants that the event log names. Whatever is killed and started
// again: the job ends with the same model bytes as one that nobody disturbed, no site counts twice,
// every log verifies, and the sites' logs reconcile with the aggregator's.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/faults/running_job.h"

namespace domicile::test {
namespace {

using audit::EventType;
using audit::PhaseKey;

// A round takes some hundredths of a second: enough of them for a busy machine to be in time for
// one.
constexpr std::uint32_t kRounds = 24;
constexpr std::uint64_t kSeed = 20261130;

Running Begin() { return BeginIn(Make({.rounds = kRounds})); }

// The last model when nobody disturbs, computed once.
const std::string& UndisturbedModel() {
  static const std::string model = [] {
    Running running = Begin();
    return Finish(running, kRounds);
  }();
  return model;
}

// Which site, and after which round's training its trainer is frozen (0: before the first), by
// seed: the same in every run.
struct Choice {
  std::string site;
  std::uint32_t after_round = 0;
};
Choice Choose(std::uint64_t test) {
  SeededRandom random(kSeed + test);
  std::array<std::uint8_t, 2> bytes{};
  random.Fill(bytes);
  return {.site = cli::HeartSites()[bytes[0] % kSites].name, .after_round = bytes[1] % 4U};
}

PhaseKey Hold(Running& running, const Choice& choice) {
  return HoldTraining(*running.federation, choice.site, choice.after_round);
}

void StartAgain(FederationProcesses& federation, const std::string& program) {
  const Status started = federation.Start(program);
  REQUIRE_MESSAGE(started.ok(), Message(started));
}

// Kills the agent of a held site between intent and receipt, where an aggregator that answers
// nothing keeps it: the aggregator is left frozen. Returns the digest of what was to be sent.
std::string KillWhileSending(FederationProcesses& federation, const std::string& site,
                             const PhaseKey& held) {
  federation.Freeze(std::string(kAggregator));
  federation.Thaw(TrainerOf(site));
  LogWatch log(federation.LogOf(site));
  const auto intent = log.WaitFor(IsEvent(EventType::kEgressIntent, held));
  REQUIRE_MESSAGE(intent.ok(), Message(intent.status()));
  federation.Kill(AgentOf(site));
  return intent->event.Text("digest");
}

}  // namespace

TEST_CASE("Kill: a trainer killed inside train is asked again, and the model is the same") {
  Running running = Begin();
  FederationProcesses& federation = *running.federation;
  const Choice choice = Choose(1);
  const PhaseKey held = Hold(running, choice);
  CAPTURE(choice.site);
  CAPTURE(held.round);

  federation.Kill(TrainerOf(choice.site));
  CHECK(Count(federation, choice.site, EventType::kTrainStarted, held) == 1);
  CHECK(Count(federation, choice.site, EventType::kTrainEnded, held) == 0);
  StartAgain(federation, TrainerOf(choice.site));

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  CHECK(Count(federation, choice.site, EventType::kTrainEnded, held) == 1);
}

TEST_CASE("Kill: an agent killed inside train trains again, and the model is the same") {
  Running running = Begin();
  FederationProcesses& federation = *running.federation;
  const Choice choice = Choose(2);
  const PhaseKey held = Hold(running, choice);
  CAPTURE(choice.site);
  CAPTURE(held.round);

  federation.Kill(AgentOf(choice.site));
  CHECK(Count(federation, choice.site, EventType::kTrainEnded, held) == 0);
  federation.Thaw(TrainerOf(choice.site));
  StartAgain(federation, AgentOf(choice.site));

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  CHECK(Count(federation, choice.site, EventType::kTrainStarted, held) == 2);
  CHECK(Count(federation, choice.site, EventType::kEgressDecided, held) == 1);
}

TEST_CASE("Kill: an agent killed while it sends, sends the same bytes again") {
  Running running = Begin();
  FederationProcesses& federation = *running.federation;
  const Choice choice = Choose(3);
  const PhaseKey held = Hold(running, choice);
  CAPTURE(choice.site);
  CAPTURE(held.round);

  const std::string intended = KillWhileSending(federation, choice.site, held);
  federation.Thaw(std::string(kAggregator));
  CHECK(Count(federation, choice.site, EventType::kEgressDone, held) == 0);
  StartAgain(federation, AgentOf(choice.site));

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  const auto leaves = federation.Leaves(choice.site);
  REQUIRE(leaves.ok());
  CHECK(CountLeaves(*leaves, IsEvent(EventType::kTrainStarted, held)) == 1);
  for (const audit::Leaf& leaf : *leaves) {
    if (IsEvent(EventType::kEgressIntent, held)(leaf)) {
      CHECK(leaf.event.Text("digest") == intended);
    }
  }
}

TEST_CASE("Kill: bytes that changed on disk while the agent was dead do not leave") {
  Running running = Begin();
  FederationProcesses& federation = *running.federation;
  const Choice choice = Choose(8);
  const PhaseKey held = Hold(running, choice);
  CAPTURE(choice.site);
  CAPTURE(held.round);
  const std::string intended = KillWhileSending(federation, choice.site, held);
  const std::string outbox =
      federation.Folders().Path("sites/" + choice.site + "/state/outbox/" + intended);
  auto bytes = ReadFile(outbox, std::uint64_t{1} << 20U);
  REQUIRE_MESSAGE(bytes.ok(), Message(bytes.status()));
  bytes->back() = static_cast<char>(bytes->back() ^ 1);
  REQUIRE(WriteFileDurably(outbox, AsBytes(*bytes)).ok());
  federation.Thaw(std::string(kAggregator));
  StartAgain(federation, AgentOf(choice.site));

  // The site declines; with a quorum of all four the job cannot go on.
  const StatusOr<audit::Leaf> ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();

  CHECK(ended->event.Text("state") == "failed");
  CHECK(ended->event.Text("reason") == "BELOW-FLOOR");
  CHECK(Count(federation, choice.site, EventType::kEgressIntent, held) == 1);
  CHECK(Count(federation, choice.site, EventType::kEgressDone, held) == 0);
  CHECK(federation.Output(AgentOf(choice.site)).find("DIGEST-MISMATCH") != std::string::npos);
  const auto leaves = federation.Leaves(kAggregator);
  REQUIRE(leaves.ok());
  CHECK(CountLeaves(*leaves, [&](const audit::Leaf& leaf) {
          return IsEvent(EventType::kIngressReceived, held)(leaf) &&
                 leaf.event.Text("site") == choice.site;
        }) == 0);
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

TEST_CASE("Kill: an agent killed between decision and intent sends what was decided") {
  Running running = Begin();
  FederationProcesses& federation = *running.federation;
  Choice choice = Choose(4);
  bool hit = false;
  PhaseKey held;
  // Each try is a kill in or just after the window; a later round is taken if it was after.
  for (choice.after_round = 0; !hit && choice.after_round + 1 < kRounds; ++choice.after_round) {
    held = Hold(running, choice);
    {
      LogWatch log(federation.LogOf(choice.site));
      federation.Thaw(TrainerOf(choice.site));
      const auto decided = log.Spin(IsEvent(EventType::kEgressDecided, held));
      federation.Kill(AgentOf(choice.site));
      REQUIRE_MESSAGE(decided.ok(), Message(decided.status()));
    }
    hit = Count(federation, choice.site, EventType::kEgressIntent, held) == 0;
    StartAgain(federation, AgentOf(choice.site));
  }
  CAPTURE(choice.site);
  CAPTURE(held.round);
  CHECK(hit);

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  CHECK(Count(federation, choice.site, EventType::kTrainStarted, held) == 1);
  CHECK(Count(federation, choice.site, EventType::kUpdateCounted, held) == 1);
}

TEST_CASE("Kill: an aggregator killed while it collects gets every update again") {
  Running running = Begin();
  FederationProcesses& federation = *running.federation;
  const Choice choice = Choose(5);
  const PhaseKey held = Hold(running, choice);
  CAPTURE(choice.site);
  CAPTURE(held.round);

  {
    LogWatch log(federation.LogOf(kAggregator));
    REQUIRE(log.WaitFor(IsEvent(EventType::kIngressReceived, held)).ok());
  }
  federation.Kill(std::string(kAggregator));
  const std::size_t received = Count(federation, kAggregator, EventType::kIngressReceived, held);
  CHECK(received >= 1);
  CHECK(received < kSites);
  CHECK(Count(federation, kAggregator, EventType::kPhaseCommitted, held) == 0);
  StartAgain(federation, std::string(kAggregator));
  federation.Thaw(TrainerOf(choice.site));

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived, held) == received + kSites);
  CHECK(Count(federation, kAggregator, EventType::kPhaseOpened, held) == 2);
}

namespace {

// Kills the aggregator as soon as its log has `count` events of this type and phase, once a frozen
// trainer goes on; in the first round where `wanted` says that the instant was hit.
PhaseKey KillAggregatorAt(Running& running, const Choice& choice, EventType type, std::size_t count,
                          bool committed) {
  FederationProcesses& federation = *running.federation;
  for (std::uint32_t after = 0; after + 1 < kRounds; ++after) {
    const PhaseKey held = Hold(running, {.site = choice.site, .after_round = after});
    {
      LogWatch log(federation.LogOf(kAggregator));
      std::size_t seen = 0;
      bool thawed = false;
      const auto all = log.Spin([&](const audit::Leaf& leaf) {
        seen += IsEvent(EventType::kIngressReceived, held)(leaf) ? 1U : 0U;
        if (!thawed && seen == kSites - 1) {
          thawed = true;  // only the frozen one is missing
          federation.Thaw(TrainerOf(choice.site));
        }
        return IsEvent(type, held)(leaf) && seen == count;
      });
      federation.Kill(std::string(kAggregator));
      REQUIRE_MESSAGE(all.ok(), Message(all.status()));
    }
    const bool has = Count(federation, kAggregator, EventType::kPhaseCommitted, held) == 1;
    StartAgain(federation, std::string(kAggregator));
    if (has == committed) {
      return held;
    }
  }
  FAIL("no kill hit the instant");
  return {};
}

}  // namespace

TEST_CASE("Kill: an aggregator killed with every update, before the commit, collects again") {
  Running running = Begin();

  const PhaseKey held = KillAggregatorAt(running, Choose(6), EventType::kIngressReceived, kSites,
                                         /*committed=*/false);
  CAPTURE(held.round);

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  CHECK(Count(*running.federation, kAggregator, EventType::kIngressReceived, held) == 2 * kSites);
}

TEST_CASE("Kill: an aggregator killed just after a commit does not commit it again") {
  Running running = Begin();

  const PhaseKey held = KillAggregatorAt(running, Choose(7), EventType::kPhaseCommitted, kSites,
                                         /*committed=*/true);
  CAPTURE(held.round);

  CHECK(Finish(running, kRounds) == UndisturbedModel());
  CHECK(Count(*running.federation, kAggregator, EventType::kPhaseCommitted, held) == 1);
}

}  // namespace domicile::test
