// A member that sends for a round that is over or not open, from another model, under another name
// or place: each refused with its own reason, logged under the name of its certificate, and
// nobody's place is taken by it. What it sends honestly afterwards counts.
#include <cmath>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/cases/federation.h"
#include "tests/cases/hold.h"
#include "tests/cases/hostile_site.h"

namespace domicile::test {
namespace {

using audit::EventType;
using policy::Reason;

std::string Script(int rows, const std::string& values, const std::string& second_round = "") {
  const std::string answer = R"("phase":"train","rows":)" + std::to_string(rows) +
                             R"(,"delta":{"w":{"shape":[2],"values":[)" + values + "]}}}";
  return R"([{"round":2,)" + second_round + answer + ",{" + answer + "]";
}

v1::Refusal RefusalOf(const StatusOr<wire::SubmitAnswer>& answer) {
  REQUIRE_MESSAGE(answer.ok(), Message(answer.status()));
  const auto* refusal = std::get_if<v1::Refusal>(&*answer);
  REQUIRE(refusal != nullptr);
  return *refusal;
}

Reason ReasonOf(const StatusOr<wire::SubmitAnswer>& answer) {
  return policy::ReasonFromNumber(RefusalOf(answer).reason()).value_or(Reason::kNone);
}

v1::Receipt ReceiptOf(const StatusOr<wire::SubmitAnswer>& answer) {
  REQUIRE_MESSAGE(answer.ok(), Message(answer.status()));
  const auto* receipt = std::get_if<v1::Receipt>(&*answer);
  REQUIRE_MESSAGE(receipt != nullptr, std::get<v1::Refusal>(*answer).ShortDebugString());
  return *receipt;
}

// Three honest agents, `delta` that the test speaks for, and `echo` that joins no job. The second
// round of the job is open, and waits for `delta` and for the trainer of `charlie`.
struct SecondRound {
  Hold hold;
  std::unique_ptr<CaseFederation> federation;
  JobId job;
  std::unique_ptr<HostileSite> delta;
  v1::OpenPhase first;
  v1::OpenPhase open;

  SecondRound() {
    federation =
        Must(CaseFederation::Start({{"alpha", "DE", Script(10, "1,0")},
                                    {"bravo", "FR", Script(20, "0,1")},
                                    {"charlie", "NL", Script(10, "0.5,-0.5", hold.Entry())},
                                    {"delta", "AT", ""},
                                    {"echo", "ES", ""}}));
    delta = Must(HostileSite::Connect(*federation, "delta"));
    REQUIRE(Must(delta->Greet(delta->Statement())).has_welcome());
    job = Must(federation->Submit(JobFile({.rounds = 2, .quorum = 4})));
    Must(delta->AcceptOffer());
    Must(federation->Approve(job));
    first = Must(delta->WaitForRound(1));
    ReceiptOf(delta->Submit(delta->Honest(first, {2, 1}, 40)));
    open = Must(delta->WaitForRound(2));
  }

  std::size_t Refused(const Fields& fields) const {
    Fields of_delta = {{"site", "delta"}, {"jurisdiction", "AT"}, {"job", job.text()}};
    of_delta.insert(fields.begin(), fields.end());
    return Count(Must(federation->Leaves("aggregator")), EventType::kIngressRefused, of_delta);
  }
};

void CheckModel(const std::vector<float>& model, double first, double second) {
  REQUIRE(model.size() == 2);
  CHECK(std::fabs(model[0] - first) < 1e-6);
  CHECK(std::fabs(model[1] - second) < 1e-6);
}

// The mean of the deltas (1,0), (0,1), (0.5,-0.5) of 10, 20, 10 rows and one more.
double MeanWith(int rows, double more, double one, double two, double three) {
  return (10 * one + 20 * two + 10 * three + rows * more) / (40 + rows);
}

// One submission that is not as it should be, and what is said to it.
struct Wrong {
  const char* name;
  std::function<void(Submission&)> change;
  const char* reason;
  bool says_what_is_open;
};

void CheckRefused(SecondRound& now, const Wrong& wrong, Submission submission) {
  CAPTURE(wrong.name);
  wrong.change(submission);

  const v1::Refusal refusal = RefusalOf(now.delta->Submit(submission));

  const auto reason = policy::ReasonFromNumber(refusal.reason());
  REQUIRE(reason.has_value());
  CHECK(policy::Code(*reason) == wrong.reason);
  CHECK(refusal.has_open_phase() == wrong.says_what_is_open);
  if (wrong.says_what_is_open) {
    CHECK(refusal.open_phase().job() == now.job.text());
    CHECK(refusal.open_phase().round() == 2);
    CHECK(refusal.open_model() == now.open.model().digest());
  }
  CHECK(now.Refused({{"reason", wrong.reason}}) == 1);
}

}  // namespace

TEST_CASE("Hostile member: each wrong submission has its reason, and the right one then counts") {
  SecondRound now;
  const Submission honest = now.delta->Honest(now.open, {0.5F, -0.25F}, 30);
  const Wrong all[] = {
      {"last round",
       [&](Submission& s) {
         s = now.delta->Honest(now.first, {0, 9}, 3);
       },
       "STALE-ROUND", true},
      {"a round to come", [](Submission& s) { s.phase.set_round(5); }, "ROUND-NOT-OPEN", true},
      {"no round", [](Submission& s) { s.phase.set_round(0); }, "ROUND-MISSING", true},
      {"the model before", [&](Submission& s) { s.base_model = now.first.model().digest(); },
       "WRONG-BASE-MODEL", true},
      {"another epoch", [](Submission& s) { s.epoch.set_attempt(7); }, "WRONG-EPOCH", true},
      {"another name", [](Submission& s) { s.party = "site/bravo"; }, "CLAIMED-IDENTITY", false},
      {"another role", [](Submission& s) { s.party = "aggregator/main"; }, "CLAIMED-IDENTITY",
       false},
      {"another place", [](Submission& s) { s.place = "FR"; }, "JURISDICTION-MISMATCH", false},
      {"an older start", [](Submission& s) { s.instance = 0; }, "INSTANCE", false},
      {"beyond the clip norm",
       [](Submission& s) {
         s.delta = {60, 60};
       },
       "NORM", false},
  };
  for (const Wrong& wrong : all) {
    CheckRefused(now, wrong, honest);
  }
  // Bytes that the site's own log did not decide: a header that belongs to another update.
  HostileSite::Prepared swapped = Must(now.delta->Prepare(honest));
  *swapped.header.mutable_decision() =
      Must(now.delta->Prepare(now.delta->Honest(now.open, {1, 1}, 30))).header.decision();
  CHECK(ReasonOf(now.delta->Send(swapped)) == Reason::kLogHead);

  // Other bytes than the header announces: refused when the last is there, not taken for a lost
  // connection, and the slot is free at once.
  HostileSite::Prepared altered = Must(now.delta->Prepare(honest));
  altered.update.back() ^= 1U;
  CHECK(ReasonOf(now.delta->Send(altered)) == Reason::kDigestMismatch);
  CHECK(now.Refused({{"reason", "DIGEST-MISMATCH"}}) == 1);
  CHECK(Count(Must(now.federation->Leaves("aggregator")), EventType::kIngressPartial) == 0);

  // None of it was an answer, of `delta` or of `bravo`.
  const v1::Receipt receipt = ReceiptOf(now.delta->Submit(honest));
  CHECK(ReceiptOf(now.delta->Submit(honest)).leaf().index() == receipt.leaf().index());
  CHECK(ReasonOf(now.delta->Submit(now.delta->Honest(now.open, {5, 5}, 30))) ==
        Reason::kAlreadyReceived);
  now.hold.Release();
  const auto ended = Must(now.federation->WaitForEnd(now.job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  const double one = MeanWith(40, 2, 1, 0, 0.5);
  const double two = MeanWith(40, 1, 0, 1, -0.5);
  CheckModel(Must(now.federation->Model(now.job, 1)), one, two);
  CheckModel(Must(now.federation->Model(now.job)), one + MeanWith(30, 0.5, 1, 0, 0.5),
             two + MeanWith(30, -0.25, 0, 1, -0.5));
  const auto leaves = Must(now.federation->Leaves("aggregator"));
  CHECK(Count(leaves, EventType::kIngressReceived, {{"site", "delta"}}) == 2);
  CHECK(Count(leaves, EventType::kIngressReceived, {{"site", "bravo"}}) == 2);
  CHECK(Count(leaves, EventType::kIngressRefused, {{"site", "bravo"}}) == 0);
}

TEST_CASE("Hostile member: a place that is not its own, and a job that it has not joined") {
  SecondRound now;
  const auto echo = Must(HostileSite::Connect(*now.federation, "echo"));

  const v1::Directive refused = Must(echo->Greet(now.delta->Statement()));
  REQUIRE(refused.has_goodbye());
  CHECK(refused.goodbye().refusal().reason() ==
        static_cast<std::uint32_t>(Reason::kJurisdictionMismatch));
  CHECK(Count(Must(now.federation->Leaves("aggregator")), EventType::kPeerRefused,
              {{"peer", "site/echo"}}) == 1);

  // Its own word is taken; it may then neither send for the job nor have its model.
  REQUIRE(Must(echo->Greet(echo->Statement())).has_welcome());
  const HostileSite::Prepared foreign =
      Must(now.delta->Prepare(now.delta->Honest(now.open, {0.5F, -0.25F}, 30)));
  const v1::Refusal refusal = RefusalOf(echo->Send(foreign));
  CHECK(refusal.reason() == static_cast<std::uint32_t>(Reason::kPolicyDigestMismatch));
  CHECK_FALSE(refusal.has_open_phase());
  CHECK(echo->Fetch(now.open.model()).code() == StatusCode::kNotFound);
  CHECK(now.delta->Fetch(now.open.model()).ok());
  CHECK(Count(Must(now.federation->Leaves("aggregator")), EventType::kIngressRefused,
              {{"site", "echo"}, {"jurisdiction", "ES"}}) == 1);
  // What `echo` tried with the bytes of `delta` leaves them to `delta`.
  ReceiptOf(now.delta->Send(foreign));
  now.hold.Release();
  CHECK(Must(now.federation->WaitForEnd(now.job)).summary().state() == v1::JOB_STATE_DONE);
}

TEST_CASE("Hostile member: thousands of refused submissions add a few leaves to the log") {
  constexpr std::uint32_t kTimes = 1000;
  SecondRound now;
  const std::size_t before = Must(now.federation->Leaves("aggregator")).size();
  HostileSite::Prepared stale = Must(now.delta->Prepare(now.delta->Honest(now.first, {0, 9}, 3)));

  for (std::uint32_t i = 0; i < kTimes; ++i) {
    REQUIRE(ReasonOf(now.delta->Send(stale)) == Reason::kStaleRound);
  }
  // Nor does it help to name another round, or another job, each time.
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    stale.header.mutable_phase()->set_round(100 + i);
    REQUIRE(ReasonOf(now.delta->Send(stale)) == Reason::kRoundNotOpen);
  }
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    stale.header.mutable_phase()->set_job("job-" + std::to_string(i));
    REQUIRE(ReasonOf(now.delta->Send(stale)) == Reason::kJobUnknown);
  }

  CHECK(now.Refused({{"reason", "STALE-ROUND"}}) >= 1);
  const auto leaves = Must(now.federation->Leaves("aggregator"));
  // One of each kind at once, one a minute for its repeats, and what the agents have to say.
  CHECK(Count(leaves, EventType::kIngressRefused) <= 9);
  CHECK(leaves.size() - before <= 40);
  ReceiptOf(now.delta->Submit(now.delta->Honest(now.open, {0.5F, -0.25F}, 30)));
  now.hold.Release();
  CHECK(Must(now.federation->WaitForEnd(now.job)).summary().state() == v1::JOB_STATE_DONE);
}

}  // namespace domicile::test
