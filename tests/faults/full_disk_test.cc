// A full disk, at a site and at the aggregator: nothing is lost, nothing new is taken, and once
// there is room the job ends with the model of an undisturbed one.
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/faults/running_job.h"
#include "tests/support/small_disk.h"

namespace domicile::test {
namespace {

using audit::EventType;
using audit::PhaseKey;

constexpr std::uint32_t kRounds = 5;
constexpr std::uint64_t kDiskBytes = std::uint64_t{16} << 20U;
constexpr std::uint64_t kLargestOutput = std::uint64_t{4} << 20U;
const std::string kSite = "zurich-basel";

// `small`, a folder of the federation, lies on a disk of its own.
struct OnSmallDisk {
  std::unique_ptr<SmallDisk> disk;  // goes last: the programs write to it
  Running running;
};

// Empty where this machine gives no file system of one's own.
std::optional<OnSmallDisk> Begin(const std::string& small) {
  std::unique_ptr<FederationProcesses> made = Make({.rounds = kRounds});
  auto disk = SmallDisk::Mount(made->Folders().Path(small), kDiskBytes);
  if (disk.status().code() == StatusCode::kPermissionDenied) {
    MESSAGE("skipped: no mount namespace here, so no disk that can be filled ("
            << Message(disk.status()) << ")");
    return std::nullopt;
  }
  REQUIRE_MESSAGE(disk.ok(), Message(disk.status()));
  return OnSmallDisk{.disk = *std::move(disk), .running = BeginIn(std::move(made))};
}

const std::string& UndisturbedModel() {
  static const std::string model = [] {
    Running running = BeginIn(Make({.rounds = kRounds}));
    return Finish(running, kRounds);
  }();
  return model;
}

// Waits until a program has said this on standard error: a log on a full disk says nothing.
void WaitForOutput(const FederationProcesses& federation, const std::string& name,
                   const std::string& words) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  std::string said;
  while (said.find(words) == std::string::npos) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < until, name << " said:\n" << said);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    said = federation.Output(name);
  }
}

}  // namespace

TEST_CASE("Full disk: a site says so, sends nothing, and takes part again when there is room") {
  std::optional<OnSmallDisk> small = Begin("sites/" + kSite + "/state");
  if (!small) {
    return;
  }
  FederationProcesses& federation = *small->running.federation;
  const PhaseKey held = HoldTraining(federation, kSite, 2);

  const Status filled = small->disk->Fill();
  REQUIRE_MESSAGE(filled.ok(), Message(filled));
  federation.Thaw(TrainerOf(kSite));
  WaitForOutput(federation, AgentOf(kSite), "DISK-FULL");

  // Trained, but nothing of it was let through: what cannot be recorded does not leave.
  CHECK(Count(federation, kSite, EventType::kEgressDecided, held) == 0);
  CHECK(Count(federation, kAggregator, EventType::kPhaseCommitted, held) == 0);
  CHECK(Count(federation, kAggregator, EventType::kPhaseAbandoned, held) == 0);
  REQUIRE(small->disk->MakeRoom().ok());
  const std::string model = Finish(small->running, kRounds);

  CHECK(model == UndisturbedModel());
  CHECK(Count(federation, kSite, EventType::kEgressDone, held) == 1);
}

TEST_CASE("Full disk: the aggregator refuses with the code, and the round goes on with room") {
  std::optional<OnSmallDisk> small = Begin("aggregator/state");
  if (!small) {
    return;
  }
  FederationProcesses& federation = *small->running.federation;
  const PhaseKey held = HoldTraining(federation, kSite, 2);
  LogWatch others(federation.LogOf(kAggregator));
  for (int received = 0; received < 3; ++received) {
    const auto update = others.WaitFor(IsEvent(EventType::kIngressReceived, held));
    REQUIRE_MESSAGE(update.ok(), Message(update.status()));
  }

  const Status filled = small->disk->Fill();
  REQUIRE_MESSAGE(filled.ok(), Message(filled));
  LogWatch site(federation.LogOf(kSite));
  federation.Thaw(TrainerOf(kSite));
  const auto aborted = site.WaitFor(IsEvent(EventType::kEgressAborted, held));
  REQUIRE_MESSAGE(aborted.ok(), Message(aborted.status()));
  CHECK(aborted->event.Text("reason") == "DISK-FULL");
  WaitForOutput(federation, std::string(kAggregator), "database or disk is full");
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived, held) == 3);

  REQUIRE(small->disk->MakeRoom().ok());
  const std::string model = Finish(small->running, kRounds);

  CHECK(model == UndisturbedModel());
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived, held) == 4);
}

}  // namespace domicile::test
