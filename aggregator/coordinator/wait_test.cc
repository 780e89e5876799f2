// Deadlines over restarts, and control messages in sums: what the aggregator keeps of time.
#include <algorithm>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "aggregator/coordinator/testing.h"
#include "audit/records.h"

namespace domicile::aggregator {
namespace {

constexpr std::chrono::seconds kSoon{30};
constexpr std::uint32_t kDeadline = 600;  // of the heart job
constexpr std::uint32_t kPace = 15;       // a fortieth of it

Database OpenState(const Federation& federation) {
  return Database::Open(federation.Folder() + "/state/aggregator.db", Database::Mode::kReadOnly)
      .value();
}

std::int64_t StoredWait(const Federation& federation) {
  Database db = OpenState(federation);
  Statement find = db.Prepare("SELECT seconds FROM wait").value();
  REQUIRE(find.Step().value());
  return find.Int(0);
}

void RestartAll(Federation& federation) {
  for (const auto& site : federation.sites) {
    ++site->instance;
  }
  federation.Restart();
}

template <typename Test>
void WaitUntil(const Test& test) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (!test()) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::uint32_t DeadlineOf(const FakeSite& site) {
  const auto* open = site.port->Last<OpenMessage>();
  REQUIRE(open != nullptr);
  return open->deadline_seconds;
}

std::vector<audit::ControlSummary> Summaries(const Federation& federation, const SiteId& site) {
  std::vector<audit::ControlSummary> found;
  for (const audit::Event& leaf : LeavesOf(federation, audit::EventType::kControlSummary)) {
    if (leaf.Text("peer") == "site/" + site.text()) {
      found.push_back(audit::ReadControlSummary(leaf).value());
    }
  }
  return found;
}

std::vector<std::string> ReasonsOfAbandoned(const Federation& federation) {
  std::vector<std::string> reasons;
  for (const audit::Event& leaf : LeavesOf(federation, audit::EventType::kPhaseAbandoned)) {
    reasons.emplace_back(leaf.Text("reason"));
  }
  return reasons;
}

}  // namespace

TEST_CASE("Coordinator: a restart arms what is left of the deadline") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& site = *federation.sites[0];
  CHECK(DeadlineOf(site) == kDeadline);

  federation.Advance(std::chrono::seconds(100));
  federation.Rejoin(site);
  CHECK(DeadlineOf(site) == kDeadline - 100);  // to a site that comes back, too
  WaitUntil([&] { return StoredWait(federation) == 100; });
  federation.Advance(std::chrono::seconds(7));  // not written down when the power fails
  RestartAll(federation);

  CHECK(DeadlineOf(site) == kDeadline - 100 - kPace);
  RestartAll(federation);
  CHECK(DeadlineOf(site) == kDeadline - 100 - 2 * kPace);
}

TEST_CASE("Coordinator: however often it starts, a phase ends at its deadline") {
  Federation federation;
  federation.SubmitAndAccept();
  const FakeSite& site = *federation.sites[0];

  for (std::uint32_t restart = 1; restart < kDeadline / kPace; ++restart) {
    RestartAll(federation);
    REQUIRE(DeadlineOf(site) == kDeadline - restart * kPace);
  }
  RestartAll(federation);

  // Nothing is left: the attempt is over, and the next one has a deadline of its own.
  WaitUntil([&] {
    const auto* open = site.port->Last<OpenMessage>();
    return open != nullptr && open->epoch.attempt > 1 && open->deadline_seconds == kDeadline;
  });
  // The log says why; a site that was not back by then hears only of the next attempt.
  CHECK(ReasonsOfAbandoned(federation) == std::vector<std::string>{"BELOW-FLOOR"});
}

TEST_CASE("Coordinator: control messages are in the log in sums, at the end and each hour") {
  Federation federation;
  FakeSite& site = *federation.sites[1];
  const std::shared_ptr<FakePort> port = site.port;
  for (int i = 0; i < 3; ++i) {
    port->Hear();
  }
  federation.Advance(std::chrono::hours(1));
  federation.Rejoin(*federation.sites[0]);
  WaitUntil([&] { return Summaries(federation, site.id).size() == 1; });
  port->Hear();
  federation.Advance(std::chrono::seconds(90));
  federation.coordinator->Disconnected(site.id, port.get());

  const auto all = Summaries(federation, site.id);
  REQUIRE(all.size() == 2);
  CHECK(all[0] == audit::ControlSummary{.peer = "site/" + site.id.text(),
                                        .seconds = 3600,
                                        .messages_in = 3,
                                        .messages_out = port->Tally().messages_out,
                                        .bytes_in = 30,
                                        .bytes_out = port->Tally().bytes_out});
  CHECK(all[1] == audit::ControlSummary{.peer = "site/" + site.id.text(),
                                        .seconds = 90,
                                        .messages_in = 1,
                                        .messages_out = 0,
                                        .bytes_in = 10,
                                        .bytes_out = 0});
}

}  // namespace domicile::aggregator
