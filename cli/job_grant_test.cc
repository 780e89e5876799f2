#include <doctest/doctest.h>

#include "cli/testing_office.h"

namespace domicile::cli {
namespace {

TEST_CASE("job plan: says what a job asks, in words") {
  Office office;

  const Outcome outcome = office.Run("job plan " + HeartJob());

  CHECK(outcome.exit == 0);
  CHECK(outcome.Says("plan \"Heart disease at four hospitals\""));
  CHECK(outcome.Says("digest       3afa 26fd 108d"));
  CHECK(outcome.Says("purpose      scientific_research"));
  CHECK(outcome.Says("reads        age, trestbps, chol, "));
  CHECK(outcome.Says("label        num > 0"));
  CHECK(outcome.Says("recipients   sites, operator"));
  CHECK(outcome.Says("view         plain: the aggregator sees the numbers of this site alone"));
  CHECK(outcome.Says("training     40 rounds of 10 steps, all rows in each"));
  CHECK(outcome.Says("contributors at least 4, at most 16"));
  CHECK(outcome.Says("once         39 numbers"));                     // 3 * 13 inputs
  CHECK(outcome.Says("each round   14 numbers of at most 36 bits"));  // 2 * 2^34 + 1 levels
  CHECK(outcome.Says("norm at most 4; and 3 metrics"));
  CHECK(outcome.Says("at the end   2004 numbers"));  // 2 classes * 1000 bins, 4 metrics
  CHECK(outcome.Says("in all       2723 numbers"));  // 39 + 40 * 17 + 2004
}

TEST_CASE("job plan: says when a round stops early") {
  Office office;
  std::string job = ReadFile(HeartJob(), 1U << 20U).value();
  const auto replace = [&job](std::string_view from, std::string_view to) {
    REQUIRE(job.find(from) != std::string::npos);
    job.replace(job.find(from), from.size(), to);
  };
  replace("local_steps = 10\n", "local_epochs = 20\n");
  replace("[rounds]", "[training.early_stopping]\npatience = 1\nvalidation_share = 0.2\n[rounds]");
  office.Write("any.toml", job);
  replace("patience = 1", "patience = 3\nmin_improvement = 0.001");
  office.Write("some.toml", job);

  const Outcome any = office.Run("job plan @any.toml");
  CHECK(any.Says("training     40 rounds of as many steps as 20 passes over the rows takes"));
  CHECK(
      any.Says("stops early  after 1 pass without any improvement of the loss on a share of 0.2 "
               "of the training rows, held out"));
  CHECK(office.Run("job plan @some.toml")
            .Says("stops early  after 3 passes without an improvement of more than 0.001 of"));
  CHECK_FALSE(office.Run("job plan " + HeartJob()).Says("stops early"));
}

TEST_CASE("job plan: the written plan is its exact text and reads as the same plan") {
  Office office;

  REQUIRE(office.Run("job plan " + HeartJob() + " -o @plan.json").exit == 0);
  const Outcome outcome = office.Run("job plan @plan.json --json");

  CHECK(office.Read("plan.json") == contracts::PlanText(ReadPlan(HeartJob()).value()));
  CHECK(outcome.exit == 0);
  const Json facts = ParseJson(outcome.out).value();
  CHECK(*facts.Find("digest")->TryString() == PrintHex(office.body.plan));
  CHECK(*facts.Find("leaves")->Find("in_all")->TryInt() == 2723);
  CHECK(PrintJson(*facts.Find("plan")) == office.Read("plan.json"));
}

TEST_CASE("job plan: a wrong job file is named with its place, and nothing is written") {
  Office office;
  office.Write("job.toml", "name = 1\n");
  office.Write("plan.json", "{}");

  const Outcome job = office.Run("job plan @job.toml -o @out");
  const Outcome plan = office.Run("job plan @plan.json");
  const Outcome absent = office.Run("job plan @absent.toml");

  CHECK(job.exit == 2);
  CHECK(job.Complains("job.toml:1:8: `name` must be a string"));
  CHECK_FALSE(office.Has("out"));
  CHECK(plan.exit == 2);
  CHECK(plan.Complains("plan.json`: `plan.v` is missing"));
  CHECK(absent.exit == 3);
}

TEST_CASE("job plan: texts that would drive a terminal are shown as what they are") {
  Office office;
  std::string job = ReadFile(HeartJob(), 1U << 20U).value();
  const std::size_t at = job.find("\"age\"");
  office.Write("job.toml", job.replace(at, 5, "\"\xC3\xA4ge\""));

  CHECK(office.Run("job plan @job.toml").Says("reads        \\xc3\\xa4ge, "));
}

}  // namespace
}  // namespace domicile::cli
