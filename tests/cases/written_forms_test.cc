// One table as offices of several countries write it: byte order mark, line ends, decimal comma,
// a column that repeats, a country called NA and an owner called Null. The model is the same to the
// last bit, or the site is told what it has not declared.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/cases/real_sites.h"

namespace domicile::test {
namespace {

using policy::Reason;

// Twelve rows of five accounts. Minutes are in quarters, so that every form of them is exact.
constexpr const char* kCalls =
    "acct,country,owner,minutes,churn\n"
    "a10,NA,Null,1.25,0\na11,ZA,None,2.5,1\na12,\"NA\",NaN,3.75,0\na10,DE,Nangolo,4.25,1\n"
    "a13,NA,Null,5.5,0\na10,ZA,Botha,6.75,1\na11,,Weber,7.25,0\na12,DE,Null,8.5,1\n"
    "a10,NA,None,9.75,0\na13,ZA,NaN,10.25,1\na12,DE,Botha,1111.5,0\na10,NA,Null,12.75,1\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Semicolons, decimal commas and a thousands mark.
std::string Continental() {
  return Replaced(Replaced(Replaced(kCalls, ",", ";"), ".", ","), "1111,5", "1.111,5");
}

std::string MixedEnds() {
  std::string text = kCalls;
  for (int line = 0, at = 0; line < 4; ++line) {
    at = static_cast<int>(text.find('\n', static_cast<std::size_t>(at)));
    text.insert(static_cast<std::size_t>(at), "\r");
    at += 2;
  }
  text.pop_back();  // no line end after the last record
  return text;
}

TrainingJob Calls() {
  return {.inputs =
              "[[feature]]\ncolumn = \"minutes\"\nkind = \"number\"\n"
              "[[feature]]\ncolumn = \"country\"\nkind = \"category\"\n"
              "codes = [\"NA\", \"ZA\", \"DE\"]\n"
              "[[feature]]\ncolumn = \"owner\"\nkind = \"category\"\n"
              "codes = [\"Null\", \"None\", \"NaN\", \"Nangolo\", \"Botha\", \"Weber\"]\n"
              "[label]\ncolumn = \"churn\"\nclasses = [\"0\", \"1\"]\n",
          .model = "kind = \"logistic\"\n",
          .training = "optimizer = \"sgd\"\nlearning_rate = 0.01\nlocal_steps = 3\nbatch = 0\n"};
}

using Tensors = CaseFederation::Tensors;

// What three sites make of the table as it is above: each the same, and so their mean.
Tensors ModelOfPlainTables() {
  auto federation = Must(
      CaseFederation::Start({TableSite("alpha", "DE", kCalls), TableSite("bravo", "FR", kCalls),
                             TableSite("charlie", "NL", kCalls)}));
  const JobId job = Must(federation->Submit(TrainingJobFile(Calls())));
  Must(federation->Approve(job));
  CHECK(Must(federation->WaitForEnd(job)).summary().state() == v1::JOB_STATE_DONE);
  return Must(federation->AllTensors(job));
}

}  // namespace

TEST_CASE("Written forms: the same rows train the same model, however they are spelled") {
  const std::string comma = "delimiter = \";\"\ndecimal_mark = \",\"\n";
  // A locale that has a decimal comma, for every program; where it is installed it takes effect.
  REQUIRE(setenv("LC_ALL", "de_DE.UTF-8", 1) == 0);
  auto started = CaseFederation::Start(
      {TableSite("alpha", "DE", kCalls),
       TableSite("bravo", "FR", "\xEF\xBB\xBF" + Replaced(kCalls, "\n", "\r\n")),
       TableSite("charlie", "NL", MixedEnds()),
       TableSite("delta", "AT", Replaced(kCalls, "\n", "\r")),
       TableSite("echo", "ES", Continental(), comma + "grouping = \".\"\n"),
       TableSite("foxtrot", "IT", Continental(), comma)});
  REQUIRE(unsetenv("LC_ALL") == 0);
  auto federation = Must(std::move(started));
  const JobId job = Must(federation->Submit(TrainingJobFile(Calls())));
  Must(federation->Approve(job));

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 5);
  CHECK(ended.metrics(0).examples() == 5 * 12);  // no row is lost to one with the same account
  const Tensors model = Must(federation->AllTensors(job));
  CHECK(model == ModelOfPlainTables());
  // NA and Null are there: their weights have moved.
  const std::vector<float>& weights = model.at("weight");
  REQUIRE(weights.size() == 10);
  CHECK(std::all_of(weights.begin(), weights.end(), [](float weight) { return weight != 0; }));

  // Who has not declared the thousands mark learns it before anything is trained.
  CHECK(policy::Code(ReasonAt(ended, "foxtrot")) == policy::Code(Reason::kDatasetInvalid));
  CHECK(Count(Must(federation->Leaves("foxtrot")), audit::EventType::kEgressDecided) == 0);
  const std::string told =
      Must(ReadFile(federation->TrainerFolder("foxtrot") + "/trainer.log", 1 << 20));
  CAPTURE(told);
  CHECK(told.find("table.csv:12: column 4 `minutes`") != std::string::npos);
}

}  // namespace domicile::test
