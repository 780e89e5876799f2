// A person at a site takes an approval back while a round runs: the site sends nothing more, and
// the others go on without it.
#include <doctest/doctest.h>

#include "audit/records.h"
#include "base/file.h"
#include "tests/cases/federation.h"
#include "tests/cases/hold.h"

namespace domicile::test {
namespace {

using audit::EventType;
using policy::Reason;

std::string Script(const std::string& second_round = "") {
  const std::string answer =
      R"("phase":"train","rows":10,"delta":{"w":{"shape":[2],"values":[1,0]}}})";
  return R"([{"round":1,)" + answer + R"(,{"round":2,)" + second_round + answer + "]";
}

}  // namespace

TEST_CASE("Withdrawal: `job deny` during a round ends a site's part at once, and for good") {
  Hold hold;
  const auto federation = Must(CaseFederation::Start({{"alpha", "DE", Script()},
                                                      {"bravo", "FR", Script()},
                                                      {"charlie", "NL", Script()},
                                                      {"delta", "AT", Script(hold.Entry())}}));
  const JobId job = Must(federation->Submit(JobFile({.rounds = 2, .quorum = 3})));
  Must(federation->Approve(job));
  // Round 2 waits for the trainer of `delta` alone.
  Must(federation->WaitUntil(job, [](const v1::ShowJobResponse& state) {
    int received = 0;
    for (const v1::SiteState& site : state.sites()) {
      received += site.received() ? 1 : 0;
    }
    return state.summary().rounds_committed() == 1 && received == 3;
  }));

  Must(WriteFileDurably(federation->Path("delta/grants/" + job.text() + ".deny"), {}));
  const v1::ShowJobResponse ended = Must(federation->WaitForEnd(job));
  hold.Release();

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  CHECK(ReasonAt(ended, "delta") == Reason::kApprovalDenied);
  const auto delta = Must(federation->Leaves("delta"));
  CHECK(Count(delta, EventType::kGrantRefused, {{"reason", "APPROVAL-DENIED"}}) == 1);
  CHECK(Count(delta, EventType::kEgressIntent) == 1);  // of round 1
  const auto aggregator = Must(federation->Leaves("aggregator"));
  CHECK(Count(aggregator, EventType::kIngressReceived, {{"site", "delta"}}) == 1);
  CHECK(Count(aggregator, EventType::kIngressReceived, {{"site", "alpha"}}) == 2);
  CHECK(Count(aggregator, EventType::kOfferDeclined,
              {{"site", "delta"}, {"reason", "APPROVAL-DENIED"}}) == 1);
}

}  // namespace domicile::test
