// A full disk, at a site and at the aggregator: nothing is lost, nothing new is taken, and once
// there is room the job ends with the model of an undisturbed one.
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"
#include "tests/support/small_disk.h"

namespace domicile::test {
namespace {

using audit::EventType;
using audit::PhaseKey;

constexpr std::uint32_t kRounds = 5;
constexpr std::uint64_t kDiskBytes = std::uint64_t{16} << 20U;
constexpr std::uint64_t kLargestOutput = std::uint64_t{4} << 20U;
const std::string kSite = "zurich-basel";

// A federation whose job runs; `small`, a folder of it, lies on a disk of its own.
struct Running {
  std::unique_ptr<SmallDisk> disk;  // goes last: the programs write to it
  std::unique_ptr<FederationProcesses> federation;
  JobId job;
};

// Empty where this machine gives no file system of one's own.
std::optional<Running> Begin(const std::string& small) {
  Running running;
  auto federation = FederationProcesses::Create({.rounds = kRounds});
  REQUIRE_MESSAGE(federation.ok(), Message(federation.status()));
  running.federation = *std::move(federation);
  if (!small.empty()) {
    auto disk = SmallDisk::Mount(running.federation->Folders().Path(small), kDiskBytes);
    if (disk.status().code() == StatusCode::kPermissionDenied) {
      MESSAGE("skipped: no mount namespace here, so no disk that can be filled ("
              << Message(disk.status()) << ")");
      return std::nullopt;
    }
    REQUIRE_MESSAGE(disk.ok(), Message(disk.status()));
    running.disk = *std::move(disk);
  }
  const Status started = running.federation->StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));
  const StatusOr<JobId> job = running.federation->SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  running.job = *job;
  return running;
}

// The end of the job with everything that must hold. Returns the last model.
std::string Finish(Running& running) {
  FederationProcesses& federation = *running.federation;
  const StatusOr<audit::Leaf> ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  CHECK(ended->event.Text("state") == "done");
  const Status told = federation.WaitForOutcomes(
      {.job = running.job, .round = kRounds, .phase = "evaluate", .epoch = {}});
  CHECK_MESSAGE(told.ok(), Message(told));
  federation.StopAll();
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
  const auto commits = federation.Commits();
  REQUIRE(commits.ok());
  CHECK(commits->size() == kRounds + 2);  // statistics before, evaluation after
  for (const audit::PhaseCommitted& commit : *commits) {
    CHECK(commit.contributors.size() == 4);
  }
  return ended->event.Text("model");
}

const std::string& UndisturbedModel() {
  static const std::string model = [] {
    std::optional<Running> running = Begin("");
    return Finish(*running);
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

std::size_t Count(const FederationProcesses& federation, std::string_view party, EventType type,
                  const PhaseKey& key) {
  const auto leaves = federation.Leaves(party);
  REQUIRE(leaves.ok());
  return CountLeaves(*leaves, IsEvent(type, key));
}

}  // namespace

TEST_CASE("Full disk: a site says so, sends nothing, and takes part again when there is room") {
  std::optional<Running> running = Begin("sites/" + kSite + "/state");
  if (!running) {
    return;
  }
  FederationProcesses& federation = *running->federation;
  const StatusOr<PhaseKey> held = federation.HoldTraining(kSite, 2);
  REQUIRE_MESSAGE(held.ok(), Message(held.status()));

  const Status filled = running->disk->Fill();
  REQUIRE_MESSAGE(filled.ok(), Message(filled));
  federation.Thaw(TrainerOf(kSite));
  WaitForOutput(federation, AgentOf(kSite), "DISK-FULL");

  // Trained, but nothing of it was let through: what cannot be recorded does not leave.
  CHECK(Count(federation, kSite, EventType::kEgressDecided, *held) == 0);
  CHECK(Count(federation, kAggregator, EventType::kPhaseCommitted, *held) == 0);
  CHECK(Count(federation, kAggregator, EventType::kPhaseAbandoned, *held) == 0);
  REQUIRE(running->disk->MakeRoom().ok());
  const std::string model = Finish(*running);

  CHECK(model == UndisturbedModel());
  CHECK(Count(federation, kSite, EventType::kEgressDone, *held) == 1);
}

TEST_CASE("Full disk: the aggregator refuses with the code, and the round goes on with room") {
  std::optional<Running> running = Begin("aggregator/state");
  if (!running) {
    return;
  }
  FederationProcesses& federation = *running->federation;
  const StatusOr<PhaseKey> held = federation.HoldTraining(kSite, 2);
  REQUIRE_MESSAGE(held.ok(), Message(held.status()));
  LogWatch others(federation.LogOf(kAggregator));
  for (int received = 0; received < 3; ++received) {
    const auto update = others.WaitFor(IsEvent(EventType::kIngressReceived, *held));
    REQUIRE_MESSAGE(update.ok(), Message(update.status()));
  }

  const Status filled = running->disk->Fill();
  REQUIRE_MESSAGE(filled.ok(), Message(filled));
  LogWatch site(federation.LogOf(kSite));
  federation.Thaw(TrainerOf(kSite));
  const auto aborted = site.WaitFor(IsEvent(EventType::kEgressAborted, *held));
  REQUIRE_MESSAGE(aborted.ok(), Message(aborted.status()));
  CHECK(aborted->event.Text("reason") == "DISK-FULL");
  WaitForOutput(federation, std::string(kAggregator), "database or disk is full");
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived, *held) == 3);

  REQUIRE(running->disk->MakeRoom().ok());
  const std::string model = Finish(*running);

  CHECK(model == UndisturbedModel());
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived, *held) == 4);
}

}  // namespace domicile::test
