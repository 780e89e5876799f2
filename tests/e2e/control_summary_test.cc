// Control messages are logged in sums at both ends, and the sums are the same from either end.
#include <string>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {
namespace {

// All summaries of a log about one peer, added up.
audit::ControlSummary Total(const FederationProcesses& federation, std::string_view party,
                            const std::string& peer, std::size_t& leaves_of_peer) {
  const auto leaves = federation.Leaves(party);
  REQUIRE(leaves.ok());
  audit::ControlSummary total{.peer = peer};
  leaves_of_peer = 0;
  for (const audit::Leaf& leaf : *leaves) {
    if (leaf.event.type() != audit::EventType::kControlSummary || leaf.event.Text("peer") != peer) {
      continue;
    }
    const auto one = audit::ReadControlSummary(leaf.event);
    REQUIRE(one.ok());
    ++leaves_of_peer;
    total.messages_in += one->messages_in;
    total.messages_out += one->messages_out;
    total.bytes_in += one->bytes_in;
    total.bytes_out += one->bytes_out;
  }
  return total;
}

}  // namespace

TEST_CASE("Control summary: what a site has said is what the aggregator has heard, and back") {
  auto made = FederationProcesses::Create({.rounds = 3});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  const Status started = federation.StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));
  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  REQUIRE(federation.WaitForEnd(*job).ok());
  const Status told =
      federation.WaitForOutcomes({.job = *job, .round = 3, .phase = "evaluate", .epoch = {}});
  CHECK_MESSAGE(told.ok(), Message(told));
  federation.StopAll();

  for (const cli::DemoSite& site : cli::HeartSites()) {
    CAPTURE(site.name);
    std::size_t at_site = 0;
    std::size_t at_aggregator = 0;
    const auto of_site = Total(federation, site.name, "aggregator/main", at_site);
    const auto of_aggregator = Total(federation, kAggregator, "site/" + site.name, at_aggregator);
    CHECK(at_site == 1);  // one connection, less than an hour
    CHECK(at_aggregator == 1);
    CHECK(of_site.messages_out == of_aggregator.messages_in);
    CHECK(of_site.bytes_out == of_aggregator.bytes_in);
    // Hello, two answers to the offer, and a heartbeat for each of five phases at the least.
    CHECK(of_site.messages_out >= 8);
    // A last answer may be on its way when the site leaves.
    CHECK(of_site.messages_in <= of_aggregator.messages_out);
    CHECK(of_site.bytes_in <= of_aggregator.bytes_out);
    CHECK(of_site.messages_in >= 12);  // welcome, offer, five openings, five outcomes
    CHECK(of_site.bytes_in > of_site.messages_in);
  }
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

}  // namespace domicile::test
