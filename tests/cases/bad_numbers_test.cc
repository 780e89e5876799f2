// Numbers that are none, and numbers without measure: the first are refused at the site that has
// them, before clipping could hide them; the second are clipped. The round goes on with the others
// if they reach the floor, else the model stays.
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/cases/federation.h"

namespace domicile::test {
namespace {

using policy::Reason;

constexpr double kClip = 1;  // of the job

std::string Task(int round, int rows, const std::string& values) {
  return R"({"round":)" + std::to_string(round) + R"(,"phase":"train","loss_sum_micro":1000000,)" +
         R"("rows":)" + std::to_string(rows) + R"(,"delta":{"w":{"shape":[4],"values":[)" + values +
         "]}}}";
}

std::string Script(int rows, const std::string& first, const std::string& second) {
  return "[" + Task(1, rows, first) + "," + Task(2, rows, second) + "]";
}

struct Delta {
  int rows = 0;
  std::vector<double> values;
};

std::vector<double> MeanOfClipped(const std::vector<Delta>& deltas) {
  std::vector<double> mean(4);
  double rows = 0;
  for (const Delta& delta : deltas) {
    const double norm = std::sqrt(
        std::inner_product(delta.values.begin(), delta.values.end(), delta.values.begin(), 0.0));
    const double scale = norm > kClip ? kClip / norm : 1;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += delta.rows * scale * delta.values[i];
    }
    rows += delta.rows;
  }
  for (double& value : mean) {
    value /= rows;
  }
  return mean;
}

}  // namespace

TEST_CASE("Bad numbers: NaN and infinity are refused at the site, huge values are clipped") {
  const std::string not_a_number = R"(0.1,"nan",0.2,0.3)";
  auto federation = Must(
      CaseFederation::Start({{"alpha", "DE", Script(30, "3,4,0,0", not_a_number)},
                             {"bravo", "FR", Script(20, not_a_number, not_a_number)},
                             {"charlie", "NL", Script(20, R"("inf",0,0,0)", R"(0,0,0,"-inf")")},
                             {"delta", "AT", Script(10, "0,0,1,-1", "0,0,1,-1")},
                             {"echo", "ES", Script(20, "3.4e38,3.4e38,0,0", "0,1,0,0")}}));
  const JobId job = Must(
      federation->Submit(JobFile({.numbers = 4, .rounds = 2, .clip_l2 = "1.0", .scale_bits = 24})));
  Must(federation->Approve(job));
  const auto ended = Must(federation->WaitForEnd(job));

  // Round 1: the three others are the floor.
  const std::vector<float> model = Must(federation->Model(job, 1));
  const std::vector<double> wanted =
      MeanOfClipped({{30, {3, 4, 0, 0}}, {10, {0, 0, 1, -1}}, {20, {3.4e38, 3.4e38, 0, 0}}});
  REQUIRE(model.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(model[i] - wanted[i]) < 1e-6);
  }
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 3);
  CHECK(ended.metrics(0).examples() == 60);
  CHECK(ended.metrics(0).loss() == "0.05");  // three times 1.0 over 60 examples

  // Round 2: two are below the floor, and everybody sees who was refused and why.
  CHECK(ended.summary().state() == v1::JOB_STATE_FAILED);
  CHECK(ended.summary().reason() == static_cast<std::uint32_t>(Reason::kBelowFloor));
  CHECK(ended.summary().rounds_committed() == 1);
  CHECK(Must(federation->Model(job)) == model);
  for (const char* site : {"alpha", "bravo", "charlie"}) {
    CAPTURE(site);
    CHECK(ReasonAt(ended, site) == Reason::kNotFinite);
    // What was refused never left, and the site's own log says so.
    const auto leaves = Must(federation->Leaves(site));
    const std::size_t rounds = std::string_view(site) == "alpha" ? 1 : 2;
    CHECK(Count(leaves, audit::EventType::kEgressDenied) == rounds);
    CHECK(Count(leaves, audit::EventType::kEgressDecided) == 2 - rounds);
    CHECK(Count(leaves, audit::EventType::kEgressIntent) == 2 - rounds);
  }
  CHECK(ReasonAt(ended, "delta") == Reason::kNone);
  const auto leaves = Must(federation->Leaves("aggregator"));
  CHECK(Count(leaves, audit::EventType::kIngressReceived, {{"site", "bravo"}}) == 0);
  CHECK(Count(leaves, audit::EventType::kIngressReceived, {{"site", "charlie"}}) == 0);
  CHECK(Count(leaves, audit::EventType::kPhaseAbandoned, {{"reason", "BELOW-FLOOR"}}) == 1);
}

}  // namespace domicile::test
