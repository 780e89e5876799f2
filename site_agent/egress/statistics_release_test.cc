#include "site_agent/egress/statistics_release.h"

#include <functional>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"
#include "site_agent/egress/update_builder.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

std::vector<SiteId> Sites(const std::vector<std::string>& names) {
  std::vector<SiteId> sites;
  for (const std::string& name : names) {
    sites.push_back(Must(SiteId::Parse(name)));
  }
  return sites;
}

const std::vector<std::string> kFour = {"budapest", "cleveland", "long-beach", "zurich-basel"};

StatisticsNumbers Answer(const contracts::Plan& plan) {
  StatisticsNumbers numbers;
  for (std::size_t i = 0; i < plan.NumInputs(); ++i) {
    numbers.count.push_back(196);
    numbers.sum.push_back(-17 - static_cast<std::int64_t>(i));
    numbers.sum_squares.push_back(std::int64_t{1} << 30U);
  }
  return numbers;
}

EarlierAnswer Ask(Desk& desk, const StatisticsQuestion& question) {
  return Must(desk.Open().With([&](SiteStore& store) { return FindAnswer(store, question); }));
}

bool Keep(Desk& desk, const StatisticsQuestion& question, const StatisticsNumbers& numbers) {
  return Must(desk.Open().With(
      [&](SiteStore& store) { return KeepAnswer(store, question, numbers, 196); }));
}

TEST_CASE("Statistics: asked again by the same participants, the same numbers leave") {
  const contracts::Plan plan = HeartPlan();
  Desk desk;
  const StatisticsQuestion question = QuestionOf(plan, ExampleDigest(1), Sites(kFour));
  CHECK(std::holds_alternative<NotAskedBefore>(Ask(desk, question)));

  CHECK(Keep(desk, question, Answer(plan)));
  desk.Reopen();
  const EarlierAnswer again = Ask(desk, question);

  REQUIRE(std::holds_alternative<TaskResult>(again));
  const auto& result = std::get<TaskResult>(again);
  CHECK(result.rows == 196);
  const auto& numbers = std::get<StatisticsNumbers>(result.numbers);
  CHECK(numbers.count == Answer(plan).count);
  CHECK(numbers.sum == Answer(plan).sum);
  CHECK(numbers.sum_squares == Answer(plan).sum_squares);
  CHECK_FALSE(Keep(desk, question, numbers));  // not charged again
}

TEST_CASE("Statistics: the stored answer makes the same bytes as the trainer's") {
  const contracts::Plan plan = HeartPlan();
  Desk desk;
  const StatisticsQuestion question = QuestionOf(plan, ExampleDigest(1), Sites(kFour));
  const UpdateContext context{.job = kJob,
                              .plan = ExampleDigest(4),
                              .round = 1,
                              .phase = contracts::PhaseKind::kStatistics,
                              .base_model = ExampleDigest(5),
                              .policy = ExampleDigest(6)};
  const auto fresh = BuildUpdate(plan, context, {.rows = 196, .numbers = Answer(plan)}, {});
  REQUIRE(std::holds_alternative<BuiltUpdate>(fresh));
  Keep(desk, question, Answer(plan));

  const auto stored = BuildUpdate(plan, context, std::get<TaskResult>(Ask(desk, question)), {});

  REQUIRE(std::holds_alternative<BuiltUpdate>(stored));
  CHECK(std::get<BuiltUpdate>(stored).bytes == std::get<BuiltUpdate>(fresh).bytes);
}

TEST_CASE("Statistics: every other question about the same columns is a difference") {
  struct Case {
    const char* name;
    std::function<void(contracts::Plan&, std::vector<std::string>&)> change;
  };
  const Case cases[] = {
      {"one site absent", [](auto&, auto& sites) { sites.pop_back(); }},
      {"one site more", [](auto&, auto& sites) { sites.push_back("zz"); }},
      {"another site", [](auto&, auto& sites) { sites[0] = "aa"; }},
      {"another offset", [](auto& plan, auto&) { plan.normalisation.offsets[0] += 1; }},
      {"another range", [](auto& plan, auto&) { plan.normalisation.ranges[0] += 1; }},
      {"a finer grid", [](auto& plan, auto&) { plan.normalisation.scale_bits += 1; }},
      {"another order",
       [](auto& plan, auto&) { std::swap(plan.schema.features[0], plan.schema.features[1]); }},
      {"another code", [](auto& plan, auto&) { plan.schema.features[8].codes[0] = "4"; }},
      {"zeros read otherwise",
       [](auto& plan, auto&) { plan.schema.features[0].zero_is_missing = true; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    contracts::Plan plan = HeartPlan();
    std::vector<std::string> sites = kFour;
    Desk desk;
    Keep(desk, QuestionOf(plan, ExampleDigest(1), Sites(sites)), Answer(plan));

    c.change(plan, sites);
    const StatisticsQuestion other = QuestionOf(plan, ExampleDigest(1), Sites(sites));

    const EarlierAnswer answer = Ask(desk, other);
    REQUIRE(std::holds_alternative<Reason>(answer));
    CHECK(std::get<Reason>(answer) == Reason::kStatDifference);
    const auto kept = desk.Open().With(
        [&](SiteStore& store) { return KeepAnswer(store, other, Answer(plan), 196); });
    CHECK(kept.status().code() == StatusCode::kFailedPrecondition);
  }
}

TEST_CASE("Statistics: another version or other columns are questions of their own") {
  contracts::Plan plan = HeartPlan();
  Desk desk;
  Keep(desk, QuestionOf(plan, ExampleDigest(1), Sites(kFour)), Answer(plan));

  CHECK(std::holds_alternative<NotAskedBefore>(
      Ask(desk, QuestionOf(plan, ExampleDigest(2), Sites(kFour)))));
  plan.schema.features[0].column = "height";
  CHECK(std::holds_alternative<NotAskedBefore>(
      Ask(desk, QuestionOf(plan, ExampleDigest(1), Sites(kFour)))));
}

TEST_CASE("Statistics: versions fewer than min_cohort records apart are too close") {
  StatisticsNumbers numbers;
  CHECK_FALSE(IsTooClose(numbers, 10));  // there is no other version
  numbers.records_apart = 9;
  CHECK(IsTooClose(numbers, 10));
  numbers.records_apart = 0;
  CHECK(IsTooClose(numbers, 10));
  numbers.records_apart = 10;
  CHECK_FALSE(IsTooClose(numbers, 10));
}

}  // namespace
}  // namespace domicile::site_agent
