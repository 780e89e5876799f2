// A trainer that is alive and gets nothing done for a long time: it is waited for, by its agent and
// by the aggregator, and nothing is begun anew.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "base/file.h"
#include "base/sqlite.h"
#include "tests/faults/running_job.h"

namespace domicile::test {
namespace {

using audit::EventType;

const std::string kSlow = "cleveland";

// How many leaves of a site's log the aggregator has a signed head of.
std::int64_t WitnessedSize(const FederationProcesses& federation, const std::string& site) {
  auto db = Database::Open(federation.LogOf(kAggregator), Database::Mode::kReadOnly);
  REQUIRE_MESSAGE(db.ok(), Message(db.status()));
  auto find = db->Prepare("SELECT size FROM log_peer_head WHERE origin LIKE '%' || ? || '%'");
  REQUIRE_MESSAGE(find.ok(), Message(find.status()));
  find->Bind(1, site);
  const StatusOr<bool> found = find->Step();
  REQUIRE_MESSAGE(found.ok(), Message(found.status()));
  return *found ? find->Int(0) : 0;
}

// Two replicas, which give each other up after a second of silence.
void MakeImpatient(const FederationProcesses& federation, const std::string& site) {
  const std::string path = federation.Folders().Path("sites/" + site + "/trainer/trainer.toml");
  StatusOr<std::string> text = ReadFile(path, 1 << 20);
  REQUIRE_MESSAGE(text.ok(), Message(text.status()));
  const std::string from = "strategy = \"one_device\"";
  REQUIRE(text->find(from) != std::string::npos);
  text->replace(text->find(from), from.size(),
                "strategy = \"mirrored\"\nreplicas = 2\nsilence_seconds = 1");
  REQUIRE(WriteFileDurably(path, AsBytes(*text)).ok());
}

}  // namespace

TEST_CASE(
    "Slow trainer: its agent goes on reporting, and its round is complete once it has ended") {
  constexpr std::uint32_t kRounds = 6;
  std::unique_ptr<FederationProcesses> made = Make({.rounds = kRounds});
  MakeImpatient(*made, kSlow);
  Running running = BeginIn(std::move(made));
  FederationProcesses& federation = *running.federation;
  const audit::PhaseKey held = HoldTraining(federation, kSlow, 1);
  const auto leaves = federation.Leaves(kSlow);
  REQUIRE(leaves.ok());
  const auto begun = static_cast<std::int64_t>(leaves->size());

  // Nothing but a heartbeat tells the aggregator of what the agent has logged meanwhile.
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (WitnessedSize(federation, kSlow) < begun) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(Count(federation, kSlow, EventType::kTrainEnded, held) == 0);
  CHECK(Count(federation, kAggregator, EventType::kPhaseCommitted, held) == 0);
  federation.Thaw(TrainerOf(kSlow));

  Finish(running, kRounds);
  CHECK(Count(federation, kSlow, EventType::kTrainStarted, held) == 1);
  CHECK(Count(federation, kSlow, EventType::kTrainEnded, held) == 1);
  CHECK(Count(federation, kAggregator, EventType::kPhaseOpened, held) == 1);
}

}  // namespace domicile::test
