// The aggregator on a disk that is full: wherever a write fails, nothing is half written, the site
// is told, and once there is room the job ends with the same model.
#include "tests/support/full_disk.h"

#include <chrono>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include "aggregator/coordinator/testing.h"
#include "audit/verify.h"

namespace domicile::aggregator {
namespace {

// More than one update writes; a sweep that gets there has met every write.
constexpr std::uint64_t kMostWrites = 100;
constexpr std::chrono::seconds kSoon{30};

void CheckLog(Federation& federation) {
  const auto report = audit::VerifyLogFile(federation.Folder() + "/state/aggregator.db", {});
  REQUIRE(report.ok());
  CHECK_MESSAGE(report->Intact(), audit::PrintReport(*report));
}

// What is not received yet, of every site; then the round is committed. Returns its model.
std::string SendAll(Federation& federation) {
  for (std::size_t i = 0; i < federation.sites.size(); ++i) {
    FakeSite& site = *federation.sites[i];
    if (federation.coordinator->Show("alice", federation.job)->rounds_committed == 0) {
      CHECK(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
            policy::Reason::kNone);
    }
  }
  REQUIRE(federation.coordinator->Show("alice", federation.job)->rounds_committed == 1);
  CheckLog(federation);
  return federation.ModelBytes();
}

// The retry is armed by the clock of the test, and run by a thread.
void WaitForRound(Federation& federation) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (federation.coordinator->Show("alice", federation.job)->rounds_committed == 0) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    federation.Advance(std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Every site is told, in this order: the commit of the first round, the opening of the second.
bool IsTold(const FakePort& port) {
  std::size_t outcome_at = 0;
  std::size_t opening_at = 0;
  const auto* outcome = port.Last<OutcomeMessage>(&outcome_at);
  const auto* opening = port.Last<OpenMessage>(&opening_at);
  return outcome != nullptr && outcome->key.round == 1 && opening != nullptr &&
         opening->key.round == 2 && outcome_at < opening_at;
}

void WaitUntilTold(Federation& federation) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (!std::all_of(federation.sites.begin(), federation.sites.end(),
                      [](const auto& site) { return IsTold(*site->port); })) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    federation.Advance(std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

TEST_CASE("Coordinator: wherever a disk is full, an update is not received and can be sent again") {
  std::set<std::string> models;
  std::uint64_t failures = 0;
  for (std::uint64_t room = 0; room < kMostWrites; ++room) {
    CAPTURE(room);
    test::FullDisk disk;
    Federation federation;
    federation.SubmitAndAccept();
    FakeSite& site = *federation.sites[0];
    const SentUpdate sent = federation.Update(site, kDeltas[0], kWeights[0]);
    disk.FillAfter(room);

    const policy::Reason reason = federation.Send(site.id, sent);
    const bool was_full = disk.WasFull();
    disk.MakeRoom();

    CHECK(reason == (was_full ? policy::Reason::kDiskFull : policy::Reason::kNone));
    // If only the head of the receipt found no room, it was received; the repeat gets the receipt.
    models.insert(SendAll(federation));
    if (!was_full) {
      break;
    }
    ++failures;
  }

  CHECK(failures > 1);
  CHECK(failures < kMostWrites);
  CHECK(models.size() == 1);
}

TEST_CASE("Coordinator: a commit that finds no room is made when there is some") {
  std::set<std::string> models;
  // The first writes are those of the last update's receipt, then come those of the commit.
  std::uint64_t commits_that_failed = 0;
  std::uint64_t told_later = 0;
  for (std::uint64_t room = 0; room < kMostWrites; ++room) {
    CAPTURE(room);
    test::FullDisk disk;
    Federation federation;
    federation.SubmitAndAccept();
    for (std::size_t i = 0; i + 1 < federation.sites.size(); ++i) {
      FakeSite& site = *federation.sites[i];
      REQUIRE(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
              policy::Reason::kNone);
    }
    FakeSite& last = *federation.sites.back();
    const SentUpdate sent = federation.Update(last, kDeltas.back(), kWeights.back());
    disk.FillAfter(room);

    static_cast<void>(federation.Send(last.id, sent));
    const bool was_full = disk.WasFull();
    disk.MakeRoom();

    const JobView after = *federation.coordinator->Show("alice", federation.job);
    if (after.rounds_committed == 0 && after.sites.back().received) {
      ++commits_that_failed;
      WaitForRound(federation);
    }
    models.insert(SendAll(federation));
    told_later += IsTold(*last.port) ? 0 : 1;
    WaitUntilTold(federation);
    if (!was_full) {
      break;
    }
  }

  CHECK(commits_that_failed > 1);
  CHECK(told_later > 0);
  CHECK(models.size() == 1);
}

}  // namespace domicile::aggregator
