// The real programs: domicile-trainer behind its walls, a hostile agent, and a foreign trainer.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/json.h"
#include "site_agent/trainer/testing_program.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;

// What a hostile agent can lay its hands on.
void WriteHostileDocuments(const TestSite& site) {
  const ApprovedJob& job = site.job;
  site.Write("plan.json", contracts::PlanText(job.plan));
  site.Write("model.safetensors", AsText(job.FirstModel()));
  site.Write("facts.json", PrintJson(JsonObject{{"job", job.body.job.text()},
                                                {"policy", PrintHex(job.body.effective_policy)},
                                                {"base_model", PrintHex(job.body.base_model)},
                                                {"phase", "statistics"},
                                                {"round", 1}}));
  site.Write("good.grant", job.Grant());
  site.Write("expired.grant", job.Grant([](auto& b) { b.not_after -= std::chrono::hours(2); }));
  site.Write("other-site.grant", job.Grant([](auto& b) { b.site = *SiteId::Parse("budapest"); }));
  site.Write("other-trainer.grant", job.Grant([](auto& b) { b.trainer.bytes[0] ^= 1U; }));
  site.Write("unknown-signer.grant",
             test::GrantBy(test::ExamplePerson("heart.example/site/x", 2), job.body, job.now));
}

}  // namespace

TEST_CASE("domicile-trainer: serves an approved job behind six walls, and stops when asked") {
  for (const bool as_nobody : {false, true}) {
    if (as_nobody && geteuid() != 0) {
      continue;
    }
    CAPTURE(as_nobody);
    TestSite site("output = \"trainer.log\"\n");
    Process trainer = site.Start(as_nobody);
    REQUIRE(trainer.Line() == "ready: unix:" + site.In("t.sock"));
    site.Approve();
    TrainerClient client = site.Connect();
    CHECK(client.hello().sandbox.size() == 6);
    CHECK(client.hello().landlock_abi == ProbeLandlock());
    CHECK(client.hello().canary > 30);
    CHECK(client.hello().trainer == crypto::FileSha256(Program("domicile-trainer"))->digest);

    const auto statistics = client.RunTask(site.Request(1, PhaseKind::kStatistics), {}, {});
    const auto trained = client.RunTask(site.Request(1, PhaseKind::kTrain), {}, {});

    REQUIRE((statistics.ok() && trained.ok()));
    REQUIRE(std::holds_alternative<TaskResult>(*statistics));
    REQUIRE(std::holds_alternative<TaskResult>(*trained));
    CHECK(std::get<TaskResult>(*statistics).rows == 202);
    CHECK(std::get<TrainNumbers>(std::get<TaskResult>(*trained).numbers).delta.size() == 2);
    trainer.Signal(SIGTERM);
    CHECK(trainer.Wait() == 0);
    CHECK(trainer.Line().empty());  // after `ready:` nothing goes to standard output
    struct stat info {};
    REQUIRE(stat(site.In("trainer.log").c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
  }
}

TEST_CASE("domicile-trainer: a hostile agent gets nothing that no grant names, nor the data file") {
  TestSite site;
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  site.Approve();
  WriteHostileDocuments(site);

  Process hostile({Program("hostile_agent"), site.In("t.sock"), site.In(""), site.In("table.csv")},
                  false);
  const std::string report = hostile.Rest();

  CAPTURE(report);
  CHECK(hostile.Wait() == 0);
  CHECK(report.find("\"as_it_should\":false") == std::string::npos);
  CHECK(std::count(report.begin(), report.end(), '\n') == 28);
}

TEST_CASE("domicile-trainer: a hostile agent of the same unprivileged user gets no further") {
  if (geteuid() != 0) {
    return;  // then the test above is this one
  }
  TestSite site;
  Process trainer = site.Start(true);
  REQUIRE(trainer.Line().starts_with("ready: "));
  site.Approve();
  WriteHostileDocuments(site);

  Process hostile({Program("hostile_agent"), site.In("t.sock"), site.In(""), site.In("table.csv")},
                  true);
  const std::string report = hostile.Rest();

  CAPTURE(report);
  CHECK(hostile.Wait() == 0);
}

TEST_CASE("domicile-trainer: a second one at the same socket, and wrong files, are refused") {
  TestSite site;
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  CHECK(site.Start().Wait() == 3);

  TestSite misspelt("aprovals = 1\n");
  CHECK(misspelt.Start().Wait() == 2);
  TestSite no_data;
  REQUIRE(RemoveFile(no_data.In("table.csv")).ok());
  CHECK(no_data.Start().Wait() == 3);
  CHECK(Process({Program("domicile-trainer"), "--nonsense"}, false).Wait() == 2);
  CHECK(Process({Program("domicile-trainer")}, false).Wait() == 2);
  CHECK(Process({Program("domicile-trainer"), "--help"}, false).Wait() == 0);
}

TEST_CASE("domicile-trainer: a killed one leaves nothing that keeps the next from starting") {
  TestSite site;
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  trainer.Signal(SIGKILL);
  CHECK(trainer.Wait() == -1);

  Process next = site.Start();
  CHECK(next.Line().starts_with("ready: "));
  next.Signal(SIGINT);
  CHECK(next.Wait() == 0);
}

TEST_CASE("Scripted trainer: a program that shares no code speaks the socket's format") {
  TestSite site;
  site.Write("script.json", R"({"trainer": ")" + std::string(64, 'a') +
                                R"(", "datasets": [{"alias": "heart",
      "commitment": ")" + std::string(64, 'b') +
                                R"("}], "sandbox": [], "landlock_abi": 0,
      "log": ")" + site.In("log") +
                                R"(",
      "tasks": [
        {"round": 1, "phase": "train", "rows": 40, "weights": {
          "weight": {"shape": [13], "values": [1,2,3,4,5,6,7,8,9,10,11,12,"nan"]},
          "bias": {"shape": [1], "values": [0.5]}}},
        {"round": 2, "phase": "train", "fail": 87},
        {"phase": "statistics", "rows": 3, "records_apart": 4, "arrays": [
          ["count", [1,1,1,1,1,1,1,1,1,1,1,1,1]], ["sum", [-1,1,1,1,1,1,1,1,1,1,1,1,1]],
          ["sum_squares", [9,1,1,1,1,1,1,1,1,1,1,1,9007199254740993]]]}]})");
  Process trainer({Program("scripted_trainer"), site.In("t.sock"), site.In("script.json")}, false);
  REQUIRE(trainer.Line().starts_with("ready: "));
  TrainerClient client = site.Connect();
  CHECK(client.hello().datasets[0].alias.text() == "heart");

  const auto trained = client.RunTask(site.Request(1, PhaseKind::kTrain), {}, {});
  const auto failed = client.RunTask(site.Request(2, PhaseKind::kTrain), {}, {});
  const auto statistics = client.RunTask(site.Request(1, PhaseKind::kStatistics), {}, {});

  REQUIRE((trained.ok() && failed.ok() && statistics.ok()));
  const auto& numbers = std::get<TrainNumbers>(std::get<TaskResult>(*trained).numbers);
  REQUIRE(numbers.delta.size() == 2);
  CHECK(numbers.delta[0].values[11] == 12);
  CHECK_FALSE(models::CheckFinite(numbers.delta).ok());
  CHECK_FALSE(numbers.loss_sum_micro.has_value());
  CHECK(std::get<FailedMessage>(*failed).reason == policy::Reason::kNoExamples);
  const auto& sums = std::get<StatisticsNumbers>(std::get<TaskResult>(*statistics).numbers);
  CHECK(sums.sum[0] == -1);
  CHECK(sums.sum_squares[12] == 9007199254740993);
  CHECK(sums.records_apart == 4);
  std::ifstream log(site.In("log"));
  CHECK(std::count(std::istreambuf_iterator<char>(log), {}, '\n') == 3);
}

}  // namespace domicile::site_agent
