// A site without examples, a site that gives nothing, no examples at any site: who counts is in the
// divisor and nobody else, and where there is nothing to average the model stays.
#include <array>
#include <cmath>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/cases/federation.h"
#include "tests/cases/hold.h"

namespace domicile::test {
namespace {

using policy::Reason;

// Rounds 1 to 3 of one site: rows and full weights; without rows it has no examples.
struct Round {
  int rows = 0;
  double first = 0;
  double second = 0;
};

std::string Task(int round, const Round& of, const std::string& more = "") {
  return "{" + more + R"("round":)" + std::to_string(round) + R"(,"phase":"train","rows":)" +
         std::to_string(of.rows) + R"(,"weights":{"w":{"shape":[2],"values":[)" +
         std::to_string(of.first) + "," + std::to_string(of.second) + "]}}}";
}

constexpr std::string_view kTrainerFailed = R"({"round":2,"phase":"train","fail":89})";

// The mean over those that have rows, as a textbook says it, in float32 at the end.
std::array<float, 2> Mean(const std::vector<Round>& sites) {
  double first = 0;
  double second = 0;
  double rows = 0;
  for (const Round& site : sites) {
    first += site.rows * site.first;
    second += site.rows * site.second;
    rows += site.rows;
  }
  return {static_cast<float>(first / rows), static_cast<float>(second / rows)};
}

constexpr Round kHuge = {.rows = 0, .first = 100, .second = 100};
constexpr Round kA1 = {.rows = 40, .first = 0.5, .second = -1};
constexpr Round kC1 = {.rows = 10, .first = 1.5, .second = 3};
constexpr Round kD1 = {.rows = 30, .first = -0.25, .second = 0.5};
constexpr Round kE1 = {.rows = 20, .first = 2, .second = 1};
constexpr Round kA2 = {.rows = 10, .first = 2, .second = 0};
constexpr Round kB2 = {.rows = 30, .first = -2, .second = 4};
constexpr Round kC2 = {.rows = 20, .first = 1, .second = 1};
constexpr Round kD2 = {.rows = 40, .first = 0.5, .second = -3};

std::string Script(const Round& first, const Round& second, const std::string& hold = "") {
  return "[" + Task(1, first, hold) + "," + Task(2, second) + "," + Task(3, kHuge) + "]";
}

bool Near(const std::vector<float>& model, const std::array<float, 2>& wanted) {
  // The grid of the plan is finer than this; float32 rounds once at each round.
  constexpr double kNear = 1e-6;
  return model.size() == 2 && std::fabs(model[0] - wanted[0]) < kNear &&
         std::fabs(model[1] - wanted[1]) < kNear;
}

}  // namespace

TEST_CASE("No examples: such a site is shown, the absent are in no divisor, and none means stay") {
  Hold hold;
  std::string absent = Script(kE1, kE1);
  absent.replace(absent.find(R"({"round":2)"), Task(2, kE1).size(), kTrainerFailed);
  auto federation = Must(CaseFederation::Start({{"alpha", "DE", Script(kA1, kA2)},
                                                {"bravo", "FR", Script(kHuge, kB2)},
                                                {"charlie", "NL", Script(kC1, kC2)},
                                                {"delta", "AT", Script(kD1, kD2, hold.Entry())},
                                                {"echo", "ES", absent}}));
  const JobId job = Must(federation->Submit(JobFile({.rounds = 3})));
  Must(federation->Approve(job));

  // While the round waits for `delta`, a person sees why `bravo` does not count.
  const auto seen = Must(federation->WaitUntil(job, [](const v1::ShowJobResponse& shown) {
    return ReasonAt(shown, "bravo") == Reason::kNoExamples;
  }));
  CHECK(seen.summary().rounds_committed() == 0);
  CHECK(ReasonAt(seen, "alpha") == Reason::kNone);
  hold.Release();
  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(Near(Must(federation->Model(job, 1)), Mean({kA1, kC1, kD1, kE1})));
  CHECK(Near(Must(federation->Model(job, 2)), Mean({kA2, kB2, kC2, kD2})));
  // Nobody had an example in round 3: it is recorded as that, and nothing new is stored.
  CHECK(ended.summary().state() == v1::JOB_STATE_FAILED);
  CHECK(ended.summary().reason() == static_cast<std::uint32_t>(Reason::kNoExamplesAnywhere));
  CHECK(ended.summary().rounds_committed() == 2);
  CHECK(Must(federation->Model(job)) == Must(federation->Model(job, 2)));
  for (const char* site : {"alpha", "bravo", "charlie", "delta", "echo"}) {
    CAPTURE(site);
    CHECK(ReasonAt(ended, site) == Reason::kNoExamples);
  }
  REQUIRE(ended.metrics_size() == 2);
  CHECK(ended.metrics(0).contributors() == 4);
  CHECK(ended.metrics(0).examples() == 100);
  CHECK(ended.metrics(0).loss().empty());  // nobody said one: not 0, not NaN
  const auto leaves = Must(federation->Leaves("aggregator"));
  CHECK(Count(leaves, audit::EventType::kPhaseCommitted) == 2);
  CHECK(Count(leaves, audit::EventType::kPhaseAbandoned, {{"reason", "NO-EXAMPLES-ANYWHERE"}}) ==
        1);
}

}  // namespace domicile::test
