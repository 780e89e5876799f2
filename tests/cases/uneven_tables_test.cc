// Sites whose tables differ: one has a single class, one lacks a class, and their rows fill no
// batch or not the last one. The right figures were worked out by another program.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/cases/real_sites.h"

namespace domicile::test {
namespace {

using policy::Reason;

TrainingJob Tumours(int rounds) {
  return {.inputs =
              "[[feature]]\ncolumn = \"f1\"\nkind = \"number\"\n"
              "[[feature]]\ncolumn = \"f2\"\nkind = \"number\"\n"
              "[label]\ncolumn = \"label\"\n"
              "classes = [\"benign\", \"malignant\", \"unclear\"]\n",
          .model = "kind = \"logistic\"\n",
          .training = "optimizer = \"sgd\"\nlearning_rate = 0.3\nlocal_steps = 1\nbatch = 0\n",
          .rounds = rounds};
}

// y = w x without an intercept, one pass a round, rows as they come.
TrainingJob Line(const std::string& last_batch) {
  return {.inputs =
              "[[feature]]\ncolumn = \"x\"\nkind = \"number\"\n"
              "[label]\ncolumn = \"y\"\nkind = \"number\"\n",
          .model = "kind = \"linear\"\n",
          .training =
              "optimizer = \"sgd\"\nlearning_rate = 0.1\nlocal_epochs = 1\nbatch = 32\n"
              "shuffle = false\nfrozen = [\"bias\"]\nlast_batch = \"" +
              last_batch + "\"\n"};
}

}  // namespace

TEST_CASE("One class only: classes are the job's at every site, and one unknown is refused there") {
  auto federation = Must(CaseFederation::Start(
      {TableSite("alpha", "DE", CaseFile("C09/site_a.csv")),
       TableSite("bravo", "FR", CaseFile("C09/site_b.csv")),
       TableSite("charlie", "NL", CaseFile("C09/site_c.csv")),
       TableSite("delta", "AT", "f1,f2,label\n1.0,0.0,benign\n2.0,1.0,SENTINEL-CLASS\n")}));
  const JobId job = Must(federation->Submit(TrainingJobFile(Tumours(5))));
  Must(federation->Approve(job));

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  CHECK(ended.summary().rounds_committed() == 5);
  REQUIRE(ended.metrics_size() == 5);
  CHECK(ended.metrics(0).contributors() == 3);
  CHECK(ended.metrics(0).examples() == 4 + 2 + 6);
  CHECK(std::stod(ended.metrics(0).loss()) == doctest::Approx(std::log(3)).epsilon(1e-5));
  const auto first = Must(federation->AllTensors(job, 1));
  CHECK(Near(first.at("weight"), {-0.066667, -0.016667, 0.083333, -0.066667, 0.133333, -0.066667},
             2e-6));
  CHECK(Near(first.at("bias"), {0, 0, 0}, 2e-6));
  const auto last = Must(federation->AllTensors(job, 5));
  CHECK(Near(last.at("weight"), {-0.119065, -0.154004, 0.273069, -0.170387, 0.451889, -0.281502},
             2e-6));
  CHECK(Near(last.at("bias"), {0.101192, -0.071646, -0.029545}, 2e-6));

  // The fourth site is told where; the others only that its data do not fit.
  CHECK(policy::Code(ReasonAt(ended, "delta")) == policy::Code(Reason::kDatasetInvalid));
  const std::string told =
      Must(ReadFile(federation->TrainerFolder("delta") + "/trainer.log", 1 << 20));
  CAPTURE(told);
  CHECK(told.find("table.csv:3:") != std::string::npos);
  CHECK(told.find("SENTINEL-CLASS") == std::string::npos);
}

TEST_CASE("Uneven rows: a short last batch that is kept is a step, and rows used are the weight") {
  auto federation =
      Must(CaseFederation::Start({TableSite("alpha", "DE", CaseFile("C41/site_a.csv")),
                                  TableSite("bravo", "FR", CaseFile("C41/site_b.csv")),
                                  TableSite("charlie", "NL", CaseFile("C41/site_c.csv"))}));
  const JobId job = Must(federation->Submit(TrainingJobFile(Line("keep"))));
  Must(federation->Approve(job));

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 3);
  CHECK(ended.metrics(0).examples() == 64 + 65 + 3);
  CHECK(Near(Must(federation->AllTensors(job)).at("weight"), {0.372212}));
}

TEST_CASE("Uneven rows: with short batches dropped, a site without a full one is in no divisor") {
  // The floor of contributors is three: the first table is there twice.
  auto federation =
      Must(CaseFederation::Start({TableSite("alpha", "DE", CaseFile("C41/site_a.csv")),
                                  TableSite("bravo", "FR", CaseFile("C41/site_b.csv")),
                                  TableSite("charlie", "NL", CaseFile("C41/site_c.csv")),
                                  TableSite("delta", "AT", CaseFile("C41/site_a.csv"))}));
  const JobId job = Must(federation->Submit(TrainingJobFile(Line("drop"))));
  Must(federation->Approve(job));

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 3);
  CHECK(ReasonAt(ended, "charlie") == Reason::kNoExamples);
  // 64 examples of each of the others, of 65 that `bravo` has.
  CHECK(Near(Must(federation->AllTensors(job)).at("weight"), {(2 * 0.261890 + 0.261803) / 3}));
  const auto leaves = Must(federation->Leaves("aggregator"));
  CHECK(Count(leaves, audit::EventType::kIngressReceived) == 3);
}

}  // namespace domicile::test
