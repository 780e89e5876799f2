// Programs that ignore policy, against programs that do not, over real mTLS: the job asks for one
// round more than every site's policy allows. Whichever end keeps to its policy is enough.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {
namespace {

using audit::EventType;

constexpr std::uint32_t kAllowed = 40;  // limit.rounds of the example's sites

const FederationJob kGreedy{
    .rounds = kAllowed + 1, .quorum = 4, .deadline_seconds = 5, .attempts = 1};

std::size_t Count(const FederationProcesses& federation, std::string_view party, EventType type,
                  std::string_view reason = {}) {
  const auto leaves = federation.Leaves(party);
  REQUIRE(leaves.ok());
  return static_cast<std::size_t>(
      std::count_if(leaves->begin(), leaves->end(), [&](const audit::Leaf& leaf) {
        return leaf.event.type() == type && (reason.empty() || leaf.event.Text("reason") == reason);
      }));
}

void MakeLax(FederationProcesses& federation, bool aggregator, bool agents) {
  if (aggregator) {
    federation.Substitute("domicile-aggregator", "lax_aggregator");
  }
  if (agents) {
    federation.Substitute("domicile-agent", "lax_agent");
  }
}

}  // namespace

TEST_CASE("Hostile peers: an aggregator that ignores policy gets nothing from a correct site") {
  auto made = FederationProcesses::Create(kGreedy);
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  MakeLax(federation, true, false);
  REQUIRE(federation.StartAll().ok());
  REQUIRE(federation.Submit().ok());
  for (const cli::DemoSite& site : cli::HeartSites()) {
    LogWatch log(federation.LogOf(site.name));
    REQUIRE(log.WaitFor([](const audit::Leaf& leaf) {
                 return leaf.event.type() == EventType::kOfferDeclined;
               })
                .ok());
  }
  federation.StopAll();

  for (const cli::DemoSite& site : cli::HeartSites()) {
    CAPTURE(site.name);
    CHECK(Count(federation, site.name, EventType::kOfferDeclined, "LIMIT-ROUNDS") == 1);
    CHECK(Count(federation, site.name, EventType::kDataOpened) == 0);
    CHECK(Count(federation, site.name, EventType::kEgressDecided) == 0);
  }
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived) == 0);
  const Status logs = federation.CheckLogs(false);
  CHECK_MESSAGE(logs.ok(), Message(logs));
}

TEST_CASE("Hostile peers: what sites send against policy is refused by a correct aggregator") {
  auto made = FederationProcesses::Create(kGreedy);
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  MakeLax(federation, false, true);
  REQUIRE(federation.StartAll().ok());
  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  const auto ended = federation.WaitForEnd(*job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();

  CHECK(ended->event.Text("state") == "failed");
  for (const cli::DemoSite& site : cli::HeartSites()) {
    CAPTURE(site.name);
    CHECK(Count(federation, site.name, EventType::kEgressDecided) >= 1);  // it did try
    CHECK(Count(federation, site.name, EventType::kUpdateCounted) == 0);
  }
  CHECK(Count(federation, kAggregator, EventType::kIngressRefused) >= 4);
  CHECK(Count(federation, kAggregator, EventType::kIngressReceived) == 0);
  CHECK(Count(federation, kAggregator, EventType::kPhaseCommitted) == 0);
  const auto leaves = federation.Leaves(kAggregator);
  REQUIRE(leaves.ok());
  for (const audit::Leaf& leaf : *leaves) {
    if (leaf.event.type() == EventType::kIngressRefused) {
      CHECK(leaf.event.Text("reason") == "LIMIT-ROUNDS");
      CHECK(leaf.event.body().Find("decision") != nullptr);
    }
  }
  const Status logs = federation.CheckLogs();
  CHECK_MESSAGE(logs.ok(), Message(logs));
}

TEST_CASE("Hostile peers: control, where neither end keeps to policy the job is done") {
  auto made = FederationProcesses::Create(
      {.rounds = kAllowed + 1, .quorum = 4, .deadline_seconds = 600, .attempts = 1});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  MakeLax(federation, true, true);
  REQUIRE(federation.StartAll().ok());
  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  const auto ended = federation.WaitForEnd(*job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();

  CHECK(ended->event.Text("state") == "done");
  CHECK(Count(federation, kAggregator, EventType::kPhaseCommitted) == kAllowed + 3);
}

}  // namespace domicile::test
