#include "site_agent/trainer/service.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "site_agent/trainer/approved_job.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

// A trainer's state folder and data file in a new folder; the service is opened in this process,
// without walls, which lockdown_test.cc and program_test.cc test.
class TestSite {
 public:
  explicit TestSite(const std::string& table = *ReadFile(ExampleFile("data/cleveland.csv"),
                                                         1 << 20)) {
    std::string name = "/tmp/domicile-service-XXXXXX";
    folder_ = mkdtemp(name.data());
    SetTable(table);
    config.federation = job.body.federation;
    config.site = job.body.site;
    config.state = JoinPath(folder_, "state");
    config.approval.approvers = {test::ApproverOf(job.approver)};
    REQUIRE(CreateFolders(config.state).ok());
    description.alias = job.plan.dataset;
    description.files = {JoinPath(folder_, "table.csv")};
    description.test_every = 3;
    start.trainer = job.body.trainer;
  }
  ~TestSite() { std::system(("rm -rf '" + folder_ + "'").c_str()); }
  TestSite(const TestSite&) = delete;
  TestSite& operator=(const TestSite&) = delete;

  void SetTable(const std::string& table) const {
    REQUIRE(WriteFileDurably(JoinPath(folder_, "table.csv"), AsBytes(table)).ok());
  }
  StatusOr<std::unique_ptr<TrainerService>> TryOpen() {
    return TrainerService::Open(config, {description}, start, clock, job.random);
  }
  // Also approves the job for the data as it is now.
  std::unique_ptr<TrainerService> Open() {
    StatusOr<std::unique_ptr<TrainerService>> service = TryOpen();
    REQUIRE(service.ok());
    if (!(*service)->Hello().datasets.empty()) {
      job.body.dataset_commitment = (*service)->Hello().datasets[0].commitment;
    }
    return *std::move(service);
  }

  ApprovedJob job;
  FakeClock clock{job.now};
  TrainerConfig config;
  contracts::DatasetDescription description;
  TrainerStart start;

 private:
  std::string folder_;
};

std::variant<ResultMessage, FailedMessage> RunTask(TrainerService& service,
                                                   const TaskMessage& task) {
  if (const auto refused = service.Admit(task, task.model_file.size())) {
    return *refused;
  }
  return service.Run(task, [](const TaskProgress&) {}, {});
}

ResultMessage MustRun(TrainerService& service, const TaskMessage& task) {
  auto ended = RunTask(service, task);
  REQUIRE(std::holds_alternative<ResultMessage>(ended));
  return std::get<ResultMessage>(std::move(ended));
}

Reason ReasonOf(const std::variant<ResultMessage, FailedMessage>& ended) {
  const auto* failed = std::get_if<FailedMessage>(&ended);
  return failed == nullptr ? Reason::kNone : failed->reason;
}

std::string WithoutLastLine(const std::string& table) {
  return table.substr(0, table.rfind('\n', table.size() - 2) + 1);
}

}  // namespace

TEST_CASE("TrainerService: each phase gives what the plan wants") {
  TestSite site;
  const auto service = site.Open();

  const ResultMessage statistics = MustRun(*service, site.job.Task(1, PhaseKind::kStatistics));
  const ResultMessage trained = MustRun(*service, site.job.Task(1, PhaseKind::kTrain));
  const ResultMessage evaluated = MustRun(*service, site.job.Task(40, PhaseKind::kEvaluate));

  CHECK(CheckResult(site.job.plan, PhaseKind::kStatistics, statistics).ok());
  CHECK(CheckResult(site.job.plan, PhaseKind::kTrain, trained).ok());
  CHECK(CheckResult(site.job.plan, PhaseKind::kEvaluate, evaluated).ok());
  CHECK(statistics.rows == 202);
  CHECK(evaluated.rows == 101);
  CHECK(trained.rows == 202);
  // The first model is all zeros: every loss is log 2.
  CHECK(trained.loss_sum_micro == doctest::Approx(202 * 693147.18).epsilon(1e-5));
  const auto delta = models::ParseSafetensors(trained.tensors);
  REQUIRE(delta.ok());
  CHECK(delta->size() == 2);
  CHECK(models::CheckFinite(*delta).ok());
}

TEST_CASE("TrainerService: the commitment is stable, keyed, and tied to the data") {
  TestSite first;
  TestSite second;
  const Digest a = first.Open()->Hello().datasets[0].commitment;
  const Digest again = first.Open()->Hello().datasets[0].commitment;
  const Digest other_salt = second.Open()->Hello().datasets[0].commitment;
  first.SetTable(WithoutLastLine(*ReadFile(ExampleFile("data/cleveland.csv"), 1 << 20)));
  const Digest other_data = first.Open()->Hello().datasets[0].commitment;

  CHECK(a == again);
  CHECK(a != other_salt);
  CHECK(a != other_data);
}

TEST_CASE("TrainerService: counts the records between versions whose statistics it handed out") {
  TestSite site;
  const std::string all = *ReadFile(ExampleFile("data/cleveland.csv"), 1 << 20);
  {
    const auto service = site.Open();
    for (int again = 0; again < 2; ++again) {
      CHECK_FALSE(MustRun(*service, site.job.Task(1, PhaseKind::kStatistics)).records_apart);
    }
  }
  site.SetTable(WithoutLastLine(WithoutLastLine(all)));
  const auto service = site.Open();

  CHECK(MustRun(*service, site.job.Task(1, PhaseKind::kStatistics)).records_apart == 2);
}

TEST_CASE("TrainerService: a grant for the data before a change does not cover the data after it") {
  TestSite site;
  site.Open();
  const TaskMessage task = site.job.Task(1, PhaseKind::kStatistics);
  site.SetTable(WithoutLastLine(*ReadFile(ExampleFile("data/cleveland.csv"), 1 << 20)));

  CHECK(ReasonOf(RunTask(*site.Open(), task)) == Reason::kGrantDataset);
}

TEST_CASE("TrainerService: a grant that expires between the check and the run is refused") {
  TestSite site;
  const auto service = site.Open();
  const TaskMessage task = site.job.Task(1, PhaseKind::kStatistics);
  REQUIRE_FALSE(service->Admit(task, task.model_file.size()).has_value());

  site.clock.SetWall(site.job.body.not_after);

  CHECK(ReasonOf(service->Run(task, [](const TaskProgress&) {}, {})) == Reason::kGrantExpired);
}

TEST_CASE("TrainerService: models that are not what they should be") {
  TestSite site;
  const auto service = site.Open();
  TaskMessage changed = site.job.Task(2, PhaseKind::kTrain);
  changed.model_file.back() ^= 1U;
  CHECK(ReasonOf(RunTask(*service, changed)) == Reason::kModelDigest);

  TaskMessage nonsense = site.job.Task(2, PhaseKind::kTrain);
  nonsense.model_file.assign(100, 0xFF);
  nonsense.model = crypto::TreeDigest(nonsense.model_file);
  CHECK(ReasonOf(RunTask(*service, nonsense)) == Reason::kModelShape);

  CHECK(ReasonOf(RunTask(*service, site.job.Task(2, PhaseKind::kTrain))) == Reason::kNone);
}

TEST_CASE(
    "TrainerService: a grant replayed after its run asks for its last phase, and nothing else") {
  TestSite site;
  {
    const auto service = site.Open();
    MustRun(*service, site.job.Task(1, PhaseKind::kStatistics));
    MustRun(*service, site.job.Task(40, PhaseKind::kEvaluate));
  }

  const auto service = site.Open();  // it is remembered over a restart
  const TaskMessage last = site.job.Task(40, PhaseKind::kEvaluate);
  CHECK(ReasonOf(RunTask(*service, last)) == Reason::kNone);
  CHECK(ReasonOf(RunTask(*service, site.job.Task(1, PhaseKind::kStatistics))) ==
        Reason::kGrantUsed);
  CHECK(ReasonOf(RunTask(*service, site.job.Task(40, PhaseKind::kTrain))) == Reason::kGrantUsed);
  TaskMessage other = last;
  other.model.bytes[0] ^= 1U;
  CHECK(ReasonOf(RunTask(*service, other)) == Reason::kGrantUsed);
}

TEST_CASE("TrainerService: a job that a person took back is refused, also when the word is gone") {
  TestSite site;
  site.config.denials = JoinPath(site.config.state, "denials");
  REQUIRE(CreateFolders(site.config.denials).ok());
  const std::string word = JoinPath(site.config.denials, site.job.body.job.text() + ".deny");
  const auto service = site.Open();
  const TaskMessage task = site.job.Task(1, PhaseKind::kStatistics);
  REQUIRE(ReasonOf(RunTask(*service, task)) == Reason::kNone);

  REQUIRE(WriteFileDurably(word, {}).ok());
  CHECK(ReasonOf(RunTask(*service, task)) == Reason::kApprovalDenied);
  REQUIRE(RemoveFile(word).ok());

  CHECK(ReasonOf(RunTask(*service, task)) == Reason::kApprovalDenied);
}

TEST_CASE("TrainerService: a cancelled task ends with its code") {
  TestSite site;
  const auto service = site.Open();
  const TaskMessage task = site.job.Task(1, PhaseKind::kTrain);
  REQUIRE_FALSE(service->Admit(task, task.model_file.size()).has_value());
  std::stop_source stop;
  stop.request_stop();

  CHECK(ReasonOf(service->Run(
            task, [](const TaskProgress&) {}, stop.get_token())) == Reason::kCancelled);
}

TEST_CASE("TrainerService: bad cells leave as a code and counts; no cell leaves (case C37)") {
  std::string table = *ReadFile(ExampleFile("data/cleveland.csv"), 1 << 20);
  const std::size_t second_line = table.find('\n') + 1;
  const std::size_t comma = table.find(',', second_line);
  table.replace(comma + 1, table.find(',', comma + 1) - comma - 1, "QX-SENTINEL-7731");
  TestSite site(table);
  const auto service = site.Open();

  const auto ended = RunTask(*service, site.job.Task(1, PhaseKind::kStatistics));

  REQUIRE(std::holds_alternative<FailedMessage>(ended));
  const FailedMessage failed = std::get<FailedMessage>(ended);
  CHECK(failed.reason == Reason::kDatasetInvalid);
  CHECK(failed.rows_read == 303);
  CHECK(failed.rows_refused == 1);
  const Bytes sent = EncodeFrame(failed);
  const Bytes hello = EncodeFrame(service->Hello());
  for (const std::string_view word : {"SENTINEL", "7731", "table.csv", "domicile-service"}) {
    CHECK(AsText(sent).find(word) == std::string_view::npos);
    CHECK(AsText(hello).find(word) == std::string_view::npos);
  }
}

TEST_CASE("TrainerService: a table that cannot be read is not offered") {
  TestSite site("a,b\n1,2,3\n");
  const auto service = site.Open();

  CHECK(service->Hello().datasets.empty());
  CHECK(ReasonOf(RunTask(*service, site.job.Task(1, PhaseKind::kStatistics))) ==
        Reason::kDatasetUnknown);
}

TEST_CASE("TrainerService: its state belongs to one trainer, its salt to one user") {
  TestSite site;
  {
    const auto service = site.Open();
    CHECK(site.TryOpen().status().code() == StatusCode::kFailedPrecondition);
  }
  const std::string salt = JoinPath(site.config.state, "salt");
  struct stat info {};
  REQUIRE(stat(salt.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(info.st_size == 32);

  REQUIRE(chmod(salt.c_str(), 0644) == 0);
  CHECK(site.TryOpen().status().code() == StatusCode::kFailedPrecondition);
  REQUIRE(chmod(salt.c_str(), 0600) == 0);
  CHECK(site.TryOpen().ok());
  REQUIRE(WriteFileDurably(salt, AsBytes("short"), 0600).ok());
  CHECK(site.TryOpen().status().code() == StatusCode::kDataLoss);
}

}  // namespace domicile::site_agent
