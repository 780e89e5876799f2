// A federation of real programs whose job runs: how the fault tests begin, hold and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {

constexpr std::size_t kSites = 4;

struct Running {
  std::unique_ptr<FederationProcesses> federation;
  JobId job;
};

// `made` is given before its programs start, for what a test does to its folders.
inline Running BeginIn(std::unique_ptr<FederationProcesses> made) {
  const Status started = made->StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));
  const StatusOr<JobId> job = made->SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  return {.federation = std::move(made), .job = *job};
}

inline std::unique_ptr<FederationProcesses> Make(const FederationJob& options) {
  auto federation = FederationProcesses::Create(options);
  REQUIRE_MESSAGE(federation.ok(), Message(federation.status()));
  return *std::move(federation);
}

// Freezes the trainer of a site inside the first training that starts after this round.
inline audit::PhaseKey HoldTraining(FederationProcesses& federation, const std::string& site,
                                    std::uint32_t after_round) {
  const StatusOr<audit::PhaseKey> held = federation.HoldTraining(site, after_round);
  REQUIRE_MESSAGE(held.ok(), Message(held.status()));
  return *held;
}

inline std::size_t Count(const FederationProcesses& federation, std::string_view party,
                         audit::EventType type, const audit::PhaseKey& key) {
  const StatusOr<std::vector<audit::Leaf>> leaves = federation.Leaves(party);
  REQUIRE_MESSAGE(leaves.ok(), Message(leaves.status()));
  return CountLeaves(*leaves, IsEvent(type, key));
}

// Waits for the end, stops everything and checks what must always hold of a job of so many rounds
// that needs all sites. Returns the last model.
inline std::string Finish(Running& running, std::uint32_t rounds) {
  FederationProcesses& federation = *running.federation;
  const StatusOr<audit::Leaf> ended = federation.WaitForEnd(running.job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  CHECK(ended->event.Text("state") == "done");
  const Status told = federation.WaitForOutcomes(
      {.job = running.job, .round = rounds, .phase = "evaluate", .epoch = {}});
  CHECK_MESSAGE(told.ok(), Message(told));
  federation.StopAll();
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
  const auto commits = federation.Commits();
  REQUIRE(commits.ok());
  CHECK(commits->size() == rounds + 2);  // statistics before, evaluation after
  for (const audit::PhaseCommitted& commit : *commits) {
    CHECK(commit.contributors.size() == kSites);
  }
  return ended->event.Text("model");
}

}  // namespace domicile::test
