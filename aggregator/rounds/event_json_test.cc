#include "aggregator/rounds/event_json.h"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/rounds/testing.h"

namespace domicile::aggregator {
namespace {

using policy::Reason;
using testing::Fill;
using testing::Organisation;
using testing::Site;

constexpr PhaseKey kKey = {7, PhaseKind::kTrain};
constexpr Epoch kEpoch = {3, 2};

std::vector<Event> AllKinds() {
  return {
      Submitted{.starts = 4, .model = Fill(1)},
      SiteConnected{Site("lyon")},
      SiteDisconnected{Site("lyon")},
      OfferAnswered{Site("lyon"), Organisation("chu"), Answer::kAccept, Reason::kNone, 3, Fill(2)},
      OfferAnswered{Site("lyon"), Organisation("chu"), Answer::kHold, Reason::kApprovalMissing, 0,
                    Fill(2)},
      OfferAnswered{Site("lyon"), Organisation("chu"), Answer::kDecline, Reason::kPurpose, 0,
                    Digest{}},
      StartDue{},
      PhaseDeclined{Site("lyon"), kKey, kEpoch, Reason::kDiskFull},
      UpdateReceived{Site("lyon"), kKey, kEpoch, Fill(9), 202, 812},
      DeadlinePassed{kKey, kEpoch},
      PhaseCommitted{
          kKey, kEpoch, {{Site("bonn"), Fill(8), 1, 2}, {Site("lyon"), Fill(9), 3, 4}}, Fill(3)},
      PhaseCommitted{{9, PhaseKind::kEvaluate}, kEpoch, {}, Digest{}},
      PhaseFailed{{1, PhaseKind::kStatistics}, kEpoch, Reason::kNormalisation},
      AggregatorStarted{5},
      AggregatorStarted{.starts = 6, .waited = std::chrono::seconds(599)},
      Cancelled{},
      AnswersWithdrawn{{Site("bonn"), Site("lyon")}, Reason::kPolicyDigestMismatch},
  };
}

TEST_CASE("ParseEvent: reads back what PrintEvent prints, for every kind") {
  std::set<std::size_t> kinds;
  for (const Event& event : AllKinds()) {
    const std::string text = PrintEvent(event);
    CAPTURE(text);
    const auto parsed = ParseEvent(text);
    REQUIRE(parsed.ok());
    CHECK(*parsed == event);
    kinds.insert(event.index());
  }
  CHECK(kinds.size() == std::variant_size_v<Event>);
}

TEST_CASE("PrintEvent: the line is that of the page") {
  const std::string nines(64, '9');
  Digest digest = Fill(0x99);
  CHECK(PrintEvent(UpdateReceived{Site("lyon"), kKey, kEpoch, digest, 202, 812}) ==
        R"({"digest":")" + nines +
            R"(","epoch":{"attempt":2,"starts":3},"event":"update_received",)"
            R"("key":{"phase":"train","round":7},"leaf":812,"site":"lyon","v":1,"weight":202})");
  CHECK(PrintEvent(OfferAnswered{Site("lyon"), Organisation("chu"), Answer::kHold,
                                 Reason::kApprovalMissing, 2, digest}) ==
        R"({"answer":"hold","event":"offer_answered","min_contributors":2,"organisation":"chu",)"
        R"("policy":")" +
            nines + R"(","reason":"APPROVAL-MISSING","site":"lyon","v":1})");
  CHECK(PrintEvent(StartDue{}) == R"({"event":"start_due","v":1})");
}

TEST_CASE("ParseEvent: unknown kinds, keys, codes and versions are refused") {
  const std::string bad[] = {
      "",
      "{}",
      R"({"event":"start_due"})",
      R"({"event":"start_due","v":2})",
      R"({"event":"start_due","extra":1,"v":1})",
      R"({"event":"start_due", "v":1})",
      R"({"event":"begun","v":1})",
      R"({"event":"aggregator_started","starts":0,"v":1,"waited_seconds":1})",
      R"({"event":"aggregator_started","starts":2,"v":1})",
      R"({"event":"aggregator_started","starts":2,"v":1,"waited_seconds":-1})",
      R"({"event":"site_connected","v":1})",
      R"({"event":"site_connected","site":"Lyon","v":1})",
      R"({"epoch":{"attempt":1,"starts":1},"event":"deadline_passed","key":{"phase":"train","round":0},"v":1})",
      R"({"epoch":{"attempt":0,"starts":1},"event":"deadline_passed","key":{"phase":"train","round":1},"v":1})",
      R"({"epoch":{"attempt":1,"starts":1},"event":"deadline_passed","key":{"phase":"test","round":1},"v":1})",
      R"({"epoch":{"attempt":1,"starts":1},"event":"phase_failed","key":{"phase":"train","round":1},"reason":"OOPS","v":1})",
  };
  for (const std::string& text : bad) {
    CAPTURE(text);
    CHECK(ParseEvent(text).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("ParseEvent: no cut of a line is an event") {
  for (const Event& event : AllKinds()) {
    const std::string text = PrintEvent(event);
    for (std::size_t size = 0; size < text.size(); ++size) {
      REQUIRE_FALSE(ParseEvent(text.substr(0, size)).ok());
    }
  }
}

}  // namespace
}  // namespace domicile::aggregator
