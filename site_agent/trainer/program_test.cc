// The real programs: domicile-trainer behind its walls, a hostile agent, and a foreign trainer.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "site_agent/sandbox/locked_child.h"
#include "site_agent/trainer/approved_job.h"
#include "site_agent/trainer/client.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;

std::string Program(std::string_view name) {
  return std::string(DOMICILE_BINARY_DIR) + "/bin/" + std::string(name);
}

// A program with its standard output in a pipe; killed when destroyed.
class Process {
 public:
  Process(const std::vector<std::string>& command, bool as_nobody) {
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    output_ = FileHandle(ends[0]);
    const FileHandle write_end(ends[1]);
    child_ = fork();
    if (child_ == 0) {
      std::vector<char*> arguments;
      for (const std::string& part : command) {
        arguments.push_back(const_cast<char*>(part.c_str()));
      }
      arguments.push_back(nullptr);
      if (dup2(write_end.descriptor(), STDOUT_FILENO) == STDOUT_FILENO &&
          (!as_nobody || BecomeNobody())) {
        execv(arguments[0], arguments.data());
      }
      _exit(126);
    }
  }
  ~Process() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The next line of output; empty at its end.
  std::string Line() {
    std::string line;
    char byte = 0;
    while (read(output_.descriptor(), &byte, 1) == 1 && byte != '\n') {
      line.push_back(byte);
    }
    return line;
  }
  std::string Rest() {
    std::string text;
    for (std::string line = Line(); !line.empty(); line = Line()) {
      text += line + "\n";
    }
    return text;
  }
  void Signal(int signal) const { kill(child_, signal); }
  int Wait() {
    int status = 0;
    const bool ended = waitpid(std::exchange(child_, -1), &status, 0) > 0;
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = -1;
  FileHandle output_;
};

// A site's folder with configuration, data and a hostile agent's documents.
class TestSite {
 public:
  explicit TestSite(std::string extra = {}) {
    std::string name = "/tmp/domicile-program-XXXXXX";
    folder_ = mkdtemp(name.data());
    REQUIRE(chmod(folder_.c_str(), 0777) == 0);
    const StatusOr<std::string> table = ReadFile(ExampleFile("data/cleveland.csv"), 1 << 20);
    REQUIRE(table.ok());
    Write("table.csv", *table);
    Write("dataset.toml",
          "[dataset]\nalias = \"heart\"\nversion = \"1\"\nfiles = [\"table.csv\"]\n"
          "test_every = 3\n");
    Write("trainer.toml",
          "[trainer]\nfederation = \"heart.example\"\nsite = \"cleveland\"\n"
          "state = \"state\"\nsocket = \"t.sock\"\ndatasets = [\"dataset.toml\"]\n"
          "approvals = 1\n" +
              std::move(extra) +
              "[[approver]]\nrole = \"operator\"\norganisation = \"data-office\"\nkey = \"" +
              job.approver.Verifier().Print() + "\"\n");
    job.body.not_after = SystemClock().Now() + std::chrono::hours(1);
  }
  ~TestSite() { std::system(("rm -rf '" + folder_ + "'").c_str()); }
  TestSite(const TestSite&) = delete;
  TestSite& operator=(const TestSite&) = delete;

  std::string In(std::string_view name) const { return JoinPath(folder_, name); }
  void Write(std::string_view name, std::string_view text) const {
    REQUIRE(WriteFileDurably(In(name), AsBytes(text), 0644).ok());
  }
  Process Start(bool as_nobody = false) const {
    return {{Program("domicile-trainer"), "--config", In("trainer.toml")}, as_nobody};
  }
  TrainerClient Connect() const {
    StatusOr<TrainerClient> client =
        TrainerClient::Connect({In("t.sock"), {}, std::chrono::seconds(20)});
    REQUIRE(client.ok());
    return *std::move(client);
  }
  // Approves the job for the trainer that serves.
  void Approve() {
    const TrainerClient client = Connect();
    REQUIRE(client.hello().datasets.size() == 1);
    job.body.trainer = client.hello().trainer;
    job.body.dataset_commitment = client.hello().datasets[0].commitment;
  }
  void WriteHostileDocuments() const {
    Write("plan.json", contracts::PlanText(job.plan));
    Write("model.safetensors", AsText(job.FirstModel()));
    Write("facts.json", PrintJson(JsonObject{{"job", job.body.job.text()},
                                             {"policy", PrintHex(job.body.effective_policy)},
                                             {"base_model", PrintHex(job.body.base_model)},
                                             {"phase", "statistics"},
                                             {"round", 1}}));
    Write("good.grant", job.Grant());
    Write("expired.grant", job.Grant([](auto& b) { b.not_after -= std::chrono::hours(2); }));
    Write("other-site.grant", job.Grant([](auto& b) { b.site = *SiteId::Parse("budapest"); }));
    Write("other-trainer.grant", job.Grant([](auto& b) { b.trainer.bytes[0] ^= 1U; }));
    Write("unknown-signer.grant",
          test::GrantBy(test::ExamplePerson("heart.example/site/x", 2), job.body, job.now));
  }
  TaskRequest Request(RoundNumber round, PhaseKind phase) const {
    const TaskMessage task = job.Task(round, phase);
    return {task.job,        task.round, task.phase,
            task.grant,      task.plan,  task.effective_policy,
            task.base_model, task.model, task.model_file};
  }

  ApprovedJob job;

 private:
  std::string folder_;
};

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
  site.WriteHostileDocuments();

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
  site.WriteHostileDocuments();

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
