// The real trainer program, killed in the middle of a task, or without room for its checkpoints.
#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/testing_program.h"
#include "tests/support/small_disk.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;

constexpr std::string_view kOutput = "output = \"trainer.log\"\n";
constexpr std::string_view kEachEpoch = "[compute]\nthreads = 1\n";

// A site with a job of epochs of some milliseconds, which stops early.
class EpochSite : public TestSite {
 public:
  explicit EpochSite(std::string_view compute = kEachEpoch) : TestSite(kOutput, compute) {
    contracts::Plan plan = job.plan;
    plan.model.kind = contracts::ModelKind::kMlp;
    plan.model.hidden = {1024, 512};
    plan.model.activation = contracts::Activation::kTanh;
    plan.model.seed = 1;
    plan.training.local_steps = 0;
    plan.training.local_epochs = 400;
    plan.training.batch = 8;
    plan.training.last_batch = contracts::LastBatch::kKeep;
    plan.training.shuffle = true;
    plan.training.learning_rate = 0.002;
    plan.training.early_stopping = {true, 5, 0, 0.2};
    job.Become(plan);
  }

  // In the second round a model is what the rounds before have made of it.
  TaskRequest Train() const {
    TaskRequest request = Request(2, PhaseKind::kTrain);
    std::vector<models::NamedTensor> model =
        models::TravellingTensors(job.plan, models::FirstParameters(job.plan, {}).value());
    const contracts::NormalisationPlan& scales = job.plan.normalisation;
    models::NamedTensor mean = {.name = std::string(contracts::kMeanTensor),
                                .shape = {scales.offsets.size()}};
    models::NamedTensor deviation = {.name = std::string(contracts::kDeviationTensor),
                                     .shape = {scales.ranges.size()}};
    for (std::size_t i = 0; i < scales.offsets.size(); ++i) {
      mean.values.push_back(static_cast<float>(scales.offsets[i]));
      deviation.values.push_back(static_cast<float>(scales.ranges[i] / 3));
    }
    model.push_back(std::move(mean));
    model.push_back(std::move(deviation));
    request.model_file = models::PrintSafetensors(model);
    request.model = crypto::TreeDigest(request.model_file);
    return request;
  }

  std::string Log() const { return ReadFile(In("trainer.log"), 1 << 20).value(); }
  std::vector<std::string> Checkpoints() const {
    std::vector<std::string> names;
    for (const std::string& name :
         ListFiles(In("state/checkpoints")).value_or(std::vector<std::string>{})) {
      if (name.ends_with(".safetensors")) {
        names.push_back(name);
      }
    }
    return names;
  }
};

// What one trainer, which nobody disturbs and which keeps nothing, makes of the task.
const TrainNumbers& Undisturbed() {
  static const TrainNumbers numbers = [] {
    EpochSite site("[compute]\nthreads = 1\ncheckpoint_steps = 0\n");
    Process trainer = site.Start();
    REQUIRE(trainer.Line().starts_with("ready: "));
    site.Approve();
    const auto ended = site.Connect().RunTask(site.Train(), {}, {});
    REQUIRE(ended.ok());
    REQUIRE(std::holds_alternative<TaskResult>(*ended));
    CHECK(site.Checkpoints().empty());
    // It does stop early, and not so early that there would be nothing to interrupt.
    const std::string log = site.Log();
    CHECK(log.find("training ended after epoch 400") == std::string::npos);
    CHECK(log.find("training ended after epoch ") != std::string::npos);
    return std::get<TrainNumbers>(std::get<TaskResult>(*ended).numbers);
  }();
  return numbers;
}

void CheckSame(const StatusOr<TaskOutcome>& ended) {
  REQUIRE(ended.ok());
  REQUIRE(std::holds_alternative<TaskResult>(*ended));
  const auto& numbers = std::get<TrainNumbers>(std::get<TaskResult>(*ended).numbers);
  CHECK(numbers.delta == Undisturbed().delta);
  CHECK(numbers.loss_sum_micro == Undisturbed().loss_sum_micro);
  CHECK(std::get<TaskResult>(*ended).rows > 0);
}

// Asks for the task, and does this once the site has so many checkpoints.
StatusOr<TaskOutcome> RunUntil(const EpochSite& site, std::size_t checkpoints,
                               const std::function<void()>& then) {
  TrainerClient client = site.Connect();
  StatusOr<TaskOutcome> ended = Error(StatusCode::kInternal, "not run");
  std::jthread task([&] { ended = client.RunTask(site.Train(), {}, {}); });
  const MonotonicTime until = SystemClock().Monotonic() + std::chrono::seconds(60);
  while (site.Checkpoints().size() < checkpoints && SystemClock().Monotonic() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(site.Checkpoints().size() >= checkpoints);
  then();
  task.join();
  return ended;
}

// After a SIGKILL in the middle, and what `then` does to its folder. What the trainer has said.
std::string GoesOnAfterAKill(const std::function<void(const EpochSite&)>& then) {
  EpochSite site;
  std::optional<Process> trainer(site.Start());
  REQUIRE(trainer->Line().starts_with("ready: "));
  site.Approve();
  const auto killed = RunUntil(site, 2, [&] {
    trainer->Signal(SIGKILL);
    CHECK(trainer->Wait() == -1);
  });
  REQUIRE_FALSE(killed.ok());
  then(site);

  trainer.emplace(site.Start());
  REQUIRE(trainer->Line().starts_with("ready: "));
  CheckSame(site.Connect().RunTask(site.Train(), {}, {}));

  CHECK(site.Checkpoints().empty());  // the task has ended
  std::string log = site.Log();
  CHECK(log.find("training goes on from the checkpoint of step ") != std::string::npos);
  return log;
}

}  // namespace

TEST_CASE("domicile-trainer: without room for checkpoints it says so, and trains all the same") {
  EpochSite site;
  auto disk = test::SmallDisk::Mount(site.In("state"), std::uint64_t{32} << 20U);
  if (disk.status().code() == StatusCode::kPermissionDenied) {
    MESSAGE("skipped: no mount namespace here, so no disk that can be filled ("
            << Message(disk.status()) << ")");
    return;
  }
  REQUIRE(disk.ok());
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  site.Approve();

  const auto ended = RunUntil(site, 1, [&] { CHECK((*disk)->Fill().ok()); });

  CheckSame(ended);
  CHECK(site.Log().find("no checkpoint after step ") != std::string::npos);
  trainer.Signal(SIGTERM);
  CHECK(trainer.Wait() == 0);
}

TEST_CASE("domicile-trainer: killed in the middle, it goes on to the same bits") {
  const std::string log = GoesOnAfterAKill([](const EpochSite& /*site*/) {});
  CHECK(log.find("is ignored") == std::string::npos);
}

TEST_CASE("domicile-trainer: what a killed task has left goes, also where none are kept") {
  EpochSite site;
  std::optional<Process> trainer(site.Start());
  REQUIRE(trainer->Line().starts_with("ready: "));
  site.Approve();
  const auto killed = RunUntil(site, 1, [&] {
    trainer->Signal(SIGKILL);
    CHECK(trainer->Wait() == -1);
  });
  REQUIRE_FALSE(killed.ok());
  REQUIRE_FALSE(site.Checkpoints().empty());
  site.Write("trainer.toml", site.Config("state", "t.sock", kOutput,
                                         "[compute]\nthreads = 1\ncheckpoint_steps = 0\n"));

  trainer.emplace(site.Start());
  REQUIRE(trainer->Line().starts_with("ready: "));
  CheckSame(site.Connect().RunTask(site.Train(), {}, {}));

  CHECK(site.Checkpoints().empty());
  CHECK(site.Log().find("goes on from") == std::string::npos);
}

TEST_CASE(
    "domicile-trainer: a damaged checkpoint is ignored with a warning, the one before serves") {
  std::string damaged;
  const std::string log = GoesOnAfterAKill([&damaged](const EpochSite& site) {
    damaged = site.Checkpoints().back();
    const std::string path = site.In("state/checkpoints/" + damaged);
    std::string file = ReadFile(path, 1 << 30).value();
    file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
    REQUIRE(WriteFileDurably(path, AsBytes(file), 0600).ok());
  });
  CHECK(log.find("`" + damaged + "` is ignored: checkpoint: its digest is not that of its bytes") !=
        std::string::npos);
}

}  // namespace domicile::site_agent
