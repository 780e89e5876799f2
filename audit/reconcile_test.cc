#include "audit/reconcile.h"

#include <algorithm>
#include <fstream>
#include <functional>

#include <doctest/doctest.h>

#include "audit/recovery.h"
#include "audit/transfers.h"
#include "base/text.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::ExampleDigest;
using test::Must;
using Events = std::vector<Event>;

const Digest kUpdate = ExampleDigest(0x11);
constexpr std::uint64_t kSize = test::kUpdateBytes;

Reconciliation Compare(const Events& site, const Events& aggregator) {
  return Must(Reconcile(test::LeavesOf(test::kSiteLog, site),
                        test::LeavesOf(test::kAggregatorLog, aggregator)));
}

bool IsAbout(const Event& event, EventType type) { return event.type() == type; }

Events Without(Events events, EventType type) {
  std::erase_if(events, [&](const Event& event) { return IsAbout(event, type); });
  return events;
}

Events With(Events events, EventType after, const Event& added) {
  const auto at = std::find_if(events.begin(), events.end(),
                               [&](const Event& event) { return IsAbout(event, after); });
  REQUIRE(at != events.end());
  events.insert(at + 1, added);
  return events;
}

Events Instead(Events events, EventType type, const Event& other) {
  for (Event& event : events) {
    event = IsAbout(event, type) ? other : event;
  }
  return events;
}

TEST_CASE("Reconcile: two honest logs match in every update, count and model") {
  const Reconciliation result = Compare(test::SiteStory(), test::AggregatorStory());

  CAPTURE(PrintReconciliation(result));
  CHECK(result.Explained());
  CHECK(result.site == "charite");
  CHECK(result.aggregator == "main");
  CHECK(result.Count(MatchClass::kMatched) == 4);  // update, model, two counted
  CHECK(result.matches.size() == 4);
  CHECK(result.matches[0].site_seq == 3);
  CHECK(result.matches[0].aggregator_seq == 2);
  CHECK(result.matches[0].bytes == kSize);
}

TEST_CASE("Reconcile: an event left out of one log or invented in it is unexplained") {
  const Events site = test::SiteStory();
  const Events aggregator = test::AggregatorStory();
  const Digest other = ExampleDigest(0x77);
  using T = EventType;
  struct Case {
    const char* name;
    Events site;
    Events aggregator;
    const char* says;
  };
  const Case cases[] = {
      {"the site hides that it sent",
       Without(Without(Without(site, T::kEgressIntent), T::kEgressDone), T::kUpdateCounted),
       aggregator, "the site's log does not say it was sent"},
      {"the site hides the decision", Without(site, T::kEgressDecided), aggregator,
       "without an `egress.decided`"},
      {"the decision comes after",
       With(Without(site, T::kEgressDecided), T::kEgressDone, test::Decided(kUpdate)), aggregator,
       "without an `egress.decided`"},
      {"an end without a beginning", Without(site, T::kEgressIntent), aggregator,
       "it had not begun"},
      {"the aggregator hides what it got",
       site,
       {aggregator[0], aggregator[1], aggregator[3], aggregator[4]},
       "the aggregator's log has no such entry"},
      {"received twice", site, With(aggregator, T::kIngressReceived, test::Received(kUpdate)),
       "received 2 times"},
      {"two updates for one phase", site,
       With(aggregator, T::kIngressReceived, test::Received(other)), "does not say it was sent"},
      {"more bytes than sent",
       site,
       {aggregator[0], aggregator[1], test::Received(kUpdate, kSize + 1), aggregator[3],
        aggregator[4]},
       "received 1001 bytes of 1000"},
      {"receipt of another entry",
       Instead(site, T::kEgressDone, test::Step(T::kEgressDone, kUpdate, kSize, 3)), aggregator,
       "the receipt is of another entry"},
      {"ended twice", With(site, T::kEgressDone, test::Step(T::kEgressDone, kUpdate, kSize, 2)),
       aggregator, "ended an attempt twice"},
      {"counted what was never received", site,
       Instead(aggregator, T::kPhaseCommitted,
               test::Committed({{"charite", kUpdate},
                                {"lyon", ExampleDigest(0x22)},
                                {"turin", ExampleDigest(0x33)}})),
       "never received it in this epoch"},
      {"counted in another epoch", site,
       Instead(aggregator, T::kPhaseCommitted,
               test::Committed({{"charite", kUpdate}}, test::ExamplePhase(2))),
       "never received it in this epoch"},
      {"counted twice", site,
       Instead(aggregator, T::kPhaseCommitted,
               test::Committed({{"charite", kUpdate}, {"charite", kUpdate}})),
       "counted twice"},
      {"the site says not counted", Instead(site, T::kUpdateCounted, test::NotCounted(kUpdate)),
       aggregator, "the site says not counted"},
      {"the site says counted, no commit", site, Without(aggregator, T::kPhaseCommitted),
       "no such commit"},
      {"another commit entry", Instead(site, T::kUpdateCounted, test::Counted(kUpdate, 3)),
       aggregator, "another commit entry"},
      {"a model nobody sent", site, Without(aggregator, T::kModelSent), "does not say was sent"},
      {"bytes of a broken attempt are too many",
       Instead(Without(site, T::kUpdateCounted), T::kEgressDone,
               test::Step(T::kEgressAborted, kUpdate, 300)),
       {aggregator[0], aggregator[1], test::NotReceived(T::kIngressPartial, kUpdate, 301)},
       "more bytes arrived (301) than the site says it wrote (300)"},
      {"a partial the site does not know",
       Events{site[0], site[1]},
       {aggregator[0], aggregator[1], test::NotReceived(T::kIngressPartial, kUpdate, 10)},
       "does not say it was sent"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Reconciliation result = Compare(c.site, c.aggregator);
    CAPTURE(PrintReconciliation(result));
    CHECK(!result.Explained());
    const bool said =
        std::any_of(result.matches.begin(), result.matches.end(), [&](const Match& match) {
          return match.match == MatchClass::kUnexplained &&
                 match.text.find(c.says) != std::string::npos;
        });
    CHECK(said);
  }
}

TEST_CASE("Reconcile: what broke off, was refused or is under way is explained") {
  const Events site = test::SiteStory();
  const Events aggregator = test::AggregatorStory();
  const Events begun = {site[0], site[1], site[2], site[3]};
  const auto aborted = [&](std::uint64_t bytes) {
    Events events = begun;
    events.push_back(test::Step(EventType::kEgressAborted, kUpdate, bytes));
    return events;
  };
  const Events nothing_yet = {aggregator[0], aggregator[1]};
  const auto with = [&](const Event& event) {
    Events events = nothing_yet;
    events.push_back(event);
    return events;
  };
  struct Case {
    const char* name;
    Events site;
    Events aggregator;
    MatchClass match;
  };
  const Case cases[] = {
      {"begun", begun, nothing_yet, MatchClass::kInFlight},
      {"begun and received", begun, with(aggregator[2]), MatchClass::kInFlight},
      {"broken off before a byte", aborted(0), nothing_yet, MatchClass::kAborted},
      {"broken off on the way", aborted(600),
       with(test::NotReceived(EventType::kIngressPartial, kUpdate, 500)), MatchClass::kAborted},
      {"received, receipt lost", aborted(kSize), with(aggregator[2]), MatchClass::kAborted},
      {"refused", aborted(kSize),
       with(test::NotReceived(EventType::kIngressRefused, kUpdate, kSize)), MatchClass::kRefused},
      {"killed on the way", begun,
       with(test::NotReceived(EventType::kIngressPartial, kUpdate, 999)), MatchClass::kInFlight},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Reconciliation result = Compare(c.site, c.aggregator);
    CAPTURE(PrintReconciliation(result));
    CHECK(result.Explained());
    CHECK(result.matches[0].match == c.match);
  }
}

TEST_CASE("Reconcile: a broken attempt and its repetition in the same epoch match") {
  Events site = test::SiteStory();
  site.insert(site.begin() + 4, {test::Step(EventType::kEgressAborted, kUpdate, 400),
                                 test::Step(EventType::kEgressIntent, kUpdate, kSize)});
  const Events aggregator = With(test::AggregatorStory(), EventType::kAggregatorStarted,
                                 test::NotReceived(EventType::kIngressPartial, kUpdate, 350));
  // The receipt names leaf 2, which is one later now.
  site[6] = test::Step(EventType::kEgressDone, kUpdate, kSize, 3);
  site[7] = test::Counted(kUpdate, 5);

  const Reconciliation result = Compare(site, aggregator);

  CAPTURE(PrintReconciliation(result));
  CHECK(result.Explained());
  CHECK(result.matches[0].match == MatchClass::kMatched);
}

TEST_CASE("Reconcile: the same bytes in a new epoch are a transfer of their own, counted once") {
  const PhaseKey again = test::ExamplePhase(2);
  Events site = test::SiteStory();
  site.pop_back();
  site.push_back(test::Decided(kUpdate, again));
  site.push_back(test::Step(EventType::kEgressIntent, kUpdate, kSize, 0, again));
  site.push_back(test::Step(EventType::kEgressDone, kUpdate, kSize, 4, again));
  site.push_back(test::Counted(kUpdate, 5, again));
  Events aggregator = test::AggregatorStory();
  aggregator.pop_back();
  aggregator.push_back(test::Received(kUpdate, kSize, "charite", again));
  aggregator.push_back(test::Committed({{"charite", kUpdate}}, again));

  const Reconciliation result = Compare(site, aggregator);

  CAPTURE(PrintReconciliation(result));
  CHECK(result.Explained());
  CHECK(result.Count(MatchClass::kMatched) == 4);  // two updates, one counted, one model
}

TEST_CASE("Reconcile: logs given in the wrong order or of nobody are an error") {
  const auto site = test::LeavesOf(test::kSiteLog, test::SiteStory());
  const auto aggregator = test::LeavesOf(test::kAggregatorLog, test::AggregatorStory());

  CHECK(Reconcile(aggregator, site).status().code() == StatusCode::kInvalidArgument);
  CHECK(Reconcile(site, site).status().code() == StatusCode::kInvalidArgument);
  CHECK(Reconcile({}, aggregator).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("PrintReconciliation: no line is wider than 100, and what is unexplained comes first") {
  Events aggregator = test::AggregatorStory();
  aggregator.push_back(test::Received(ExampleDigest(0x77)));
  const Reconciliation result = Compare(test::SiteStory(), aggregator);

  const std::string text = PrintReconciliation(result);
  const auto lines = Split(text, '\n');
  for (const std::string_view line : lines) {
    CHECK(line.size() <= 100);
  }
  CHECK(lines[3].find("unexplained") != std::string_view::npos);
  const Json json = ReconciliationJson(result);
  CHECK(*json.Find("explained")->TryBool() == false);
  CHECK(*json.Find("counts")->Find("unexplained")->TryInt() == 2);
}

TEST_CASE("ReconcileFiles: reads a database against an export") {
  const test::TempFolder folder;
  test::ExampleLog site(folder.File("agent.db"));
  site.Append(test::SiteStory());
  std::ofstream(folder.File("aggregator.jsonl"), std::ios::binary) << test::JoinLines(
      test::LinesOf(test::LeavesOf(test::kAggregatorLog, test::AggregatorStory())));

  CHECK(Must(ReconcileFiles(folder.File("agent.db"), folder.File("aggregator.jsonl"))).Explained());
  CHECK(ReconcileFiles(folder.File("none"), folder.File("agent.db")).status().code() ==
        StatusCode::kNotFound);
}

// ---- transfers ----

const TransferRow* Find(const std::vector<TransferRow>& rows, const std::string& from,
                        const std::string& to) {
  for (const TransferRow& row : rows) {
    if (row.from.party == from && row.to.party == to) {
      return &row;
    }
  }
  return nullptr;
}

TEST_CASE("Transfers: a site's log says what left it and what came, by which rules") {
  const auto rows = Must(Transfers(test::LeavesOf(test::kSiteLog, test::SiteStory())));

  REQUIRE(rows.size() == 2);
  const TransferRow& out = *Find(rows, "site/charite", "aggregator/main");
  CHECK(out.kinds == "delta.clipped+metrics.aggregate");
  CHECK(out.from.jurisdiction == "DE");
  CHECK(out.to.jurisdiction == "IE");
  CHECK(out.CrossesBorder());
  CHECK(out.count == 1);
  CHECK(out.bytes == kSize);
  CHECK(out.capacity_bits == 384);
  CHECK(out.unfinished == 0);
  CHECK(out.rules == std::vector<std::string>{"site/charite-2026/S-1"});
  const TransferRow& in = *Find(rows, "aggregator/main", "site/charite");
  CHECK(in.kinds == "model.global");
  CHECK(in.bytes == 500);
}

TEST_CASE("Transfers: both logs give the same bytes, and a resend carries its bits once") {
  const PhaseKey again = test::ExamplePhase(2);
  Events site = test::SiteStory();
  site.push_back(test::Step(EventType::kEgressIntent, kUpdate, kSize, 0, again));
  site.push_back(test::Step(EventType::kEgressDone, kUpdate, kSize, 9, again));
  Events aggregator = test::AggregatorStory();
  aggregator.push_back(test::Received(kUpdate, kSize, "charite", again));

  const auto sent = Must(Transfers(test::LeavesOf(test::kSiteLog, site)));
  const auto got = Must(Transfers(test::LeavesOf(test::kAggregatorLog, aggregator)));

  const TransferRow& out = *Find(sent, "site/charite", "aggregator/main");
  const TransferRow& in = *Find(got, "site/charite", "aggregator/main");
  CHECK(out.count == 2);
  CHECK(out.bytes == 2 * kSize);
  CHECK(out.capacity_bits == 384);
  CHECK(in.count == out.count);
  CHECK(in.bytes == out.bytes);
  CHECK(in.capacity_bits == out.capacity_bits);
  CHECK(Find(got, "site/lyon", "aggregator/main")->from.jurisdiction == "FR");
}

TEST_CASE("Transfers: attempts that broke off, never ended or were denied are counted apart") {
  const Events story = test::SiteStory();
  Events site = {story[0], story[2], story[3], test::Step(EventType::kEgressAborted, kUpdate, 400),
                 story[3]};
  site.push_back(Must(EventBuilder(EventType::kEgressDenied)
                          .Phase(test::ExamplePhase())
                          .Set("kinds", Json(JsonArray{"delta.clipped", "metrics.aggregate"}))
                          .Set("from", ToJson(test::kSite))
                          .Set("to", ToJson(test::kAggregator))
                          .Set("decision", ToJson(test::ExampleDecision("deny")))
                          .Set("count", Json(3))
                          .Build()));

  const auto rows = Must(Transfers(test::LeavesOf(test::kSiteLog, site)));

  REQUIRE(rows.size() == 1);
  CHECK(rows[0].count == 0);
  CHECK(rows[0].bytes == 0);
  CHECK(rows[0].unfinished == 2);
  CHECK(rows[0].unfinished_bytes == 400 + kSize);
  CHECK(rows[0].refused == 3);
  CHECK(PrintTransfers(rows).find("at most 1400 bytes") != std::string::npos);
}

TEST_CASE("Transfers: what was sent without a decision has a line of its own") {
  const Events story = test::SiteStory();

  const auto rows = Must(Transfers(test::LeavesOf(test::kSiteLog, {story[0], story[3], story[4]})));

  REQUIRE(rows.size() == 1);
  CHECK(rows[0].kinds == "undecided");
  CHECK(rows[0].bytes == kSize);
  CHECK(!Transfers(test::LeavesOf(test::kSiteLog, {story[2]})).ok());
}

TEST_CASE("PrintTransfers: no line is wider than 100, whatever the names") {
  TransferRow row;
  row.from = {"site/" + std::string(63, 'a'), "DE"};
  row.to = {"aggregator/" + std::string(63, 'b'), "IE"};
  row.kinds = "delta.clipped+metrics.aggregate+statistics.table";
  row.bytes = 123456789012345;
  row.rules = std::vector<std::string>(5, std::string(110, 'r'));

  for (const std::string_view line : Split(PrintTransfers({row}), '\n')) {
    CHECK(line.size() <= 100);
  }
  CHECK(PrintTransfers({}) == "nothing crossed a border\n");
  CHECK(*(*TransfersJson({row}).Find("transfers")->TryArray())[0].Find("bytes")->TryInt() ==
        123456789012345);
}

Event Witnessed(std::uint64_t size) {
  return Must(EventBuilder(EventType::kHeadWitnessed)
                  .Set("log", Json(test::kSiteLog))
                  .Set("size", Json(size))
                  .Set("root", ExampleDigest(0x31))
                  .Build());
}

Event Recovered(std::uint64_t size) {
  return Must(ToEvent(LogRecovered{.operator_name = "ada",
                                   .instance = 3,
                                   .size = size,
                                   .root = ExampleDigest(0x32),
                                   .kept = 1,
                                   .remembered_size = 6,
                                   .remembered_root = ExampleDigest(0x33),
                                   .datasets = {}}));
}

Event Taken(std::uint64_t seq) {
  return Must(EventBuilder(EventType::kHeadRecovered)
                  .Set("log", Json(test::kSiteLog))
                  .Set("recovered_seq", Json(seq))
                  .Set("size", Json(seq + 1))
                  .Set("root", ExampleDigest(0x34))
                  .Set("remembered_size", Json(6))
                  .Set("remembered_root", ExampleDigest(0x33))
                  .Build());
}

// What the aggregator says of a round whose entries the site has lost; the head was witnessed
// before it.
Events AggregatorOfLost() {
  Events events = test::AggregatorStory();
  const Events heads = {Witnessed(1), Witnessed(1)};
  events.insert(events.begin() + 1, heads.begin(), heads.end());
  return events;
}

TEST_CASE("Reconcile: what a recovery lost is told, and only what lies in the lost time") {
  const Events site = {test::SiteStarted(), Recovered(1)};
  Events aggregator = AggregatorOfLost();
  aggregator.push_back(Taken(1));

  const Reconciliation lost = Compare(site, aggregator);

  CAPTURE(PrintReconciliation(lost));
  CHECK(lost.Explained());
  CHECK(lost.Count(MatchClass::kLost) == 3);  // update, model, counted
  CHECK(PrintReconciliation(lost).find("entries 1 to 5 of before are lost") != std::string::npos);

  // Without the aggregator's word there was no recovery that it took.
  const Reconciliation untold = Compare(site, AggregatorOfLost());
  CHECK_FALSE(untold.Explained());
  // Nor is what came after it lost, nor what came before the copy.
  Events after = aggregator;
  std::rotate(after.begin() + 3, after.end() - 1, after.end());
  CHECK_FALSE(Compare(site, after).Explained());
  Events before = test::AggregatorStory();
  for (const Event& event : {Witnessed(1), Witnessed(1), Taken(1)}) {
    before.push_back(event);
  }
  CHECK_FALSE(Compare(site, before).Explained());
  // Nor does the aggregator's word alone explain anything.
  CHECK_FALSE(Compare({test::SiteStarted()}, aggregator).Explained());
}

}  // namespace
}  // namespace domicile::audit
