// Client and server over a real socket, with a handler that does as it is told.
#include "site_agent/trainer/server.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mutex.h"
#include "contracts/plan.h"
#include "site_agent/trainer/client.h"

namespace domicile::site_agent {
namespace {

std::string HeartPlanText() {
  const std::string path = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/job.toml";
  const StatusOr<std::string> text = ReadFile(path, 1 << 20);
  REQUIRE(text.ok());
  const StatusOr<contracts::Plan> plan = contracts::PlanFromJobFile(*text, path);
  REQUIRE(plan.ok());
  return contracts::PlanText(*plan);
}

ResultMessage DeltaResult() {
  models::NamedTensor bias;
  bias.name = "bias";
  bias.shape = {1};
  bias.values = {0.5F};
  ResultMessage result;
  result.phase = contracts::PhaseKind::kTrain;
  result.rows = 10;
  result.examples = 10;
  result.loss_sum_micro = 42;
  result.tensors = models::PrintSafetensors(std::span(&bias, 1));
  return result;
}

// Refuses what `refusal` says; else answers with `answer`, at once or when it is cancelled.
class TestHandler final : public TaskHandler {
 public:
  HelloMessage Hello() const override {
    HelloMessage hello;
    hello.versions = {1};
    hello.trainer.bytes.fill(7);
    return hello;
  }
  std::optional<FailedMessage> Admit(const TaskMessage&, std::uint64_t) override { return refusal; }
  std::variant<ResultMessage, FailedMessage> Run(const TaskMessage& task,
                                                 const ProgressSink& progress,
                                                 std::stop_token stop) override {
    received = task.model_file.size();
    progress({37});
    if (wait_for_stop) {
      running.Raise();
      Mutex mutex;
      ConditionVariable stopped;
      MutexLock lock(mutex);
      stopped.wait(mutex, stop, [] { return false; });
      was_cancelled = true;
      return FailedMessage{policy::Reason::kCancelled, 0, 0};
    }
    return answer;
  }

  std::optional<FailedMessage> refusal;
  ResultMessage answer = DeltaResult();
  bool wait_for_stop = false;
  std::atomic<std::size_t> received = 0;
  std::atomic<bool> was_cancelled = false;
  WakeSignal running = *WakeSignal::Make();
};

// A server on a socket in a new folder, until destroyed.
class TestServer {
 public:
  explicit TestServer(ServeOptions options = {}) : options_(options) {
    std::string name = "/tmp/domicile-socket-XXXXXX";
    folder_ = mkdtemp(name.data());
    StatusOr<FileHandle> listener = ListenUnix(Path(), 0600);
    REQUIRE(listener.ok());
    listener_ = *std::move(listener);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      served = ServeTrainer(listener_, handler, options_, stop);
    });
  }
  ~TestServer() {
    Stop();
    std::system(("rm -rf '" + folder_ + "'").c_str());
  }
  void Stop() {
    thread_.request_stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  std::string Path() const { return JoinPath(folder_, "trainer.sock"); }
  TrainerClient Connect() const {
    StatusOr<TrainerClient> client = TrainerClient::Connect({Path(), {}, std::chrono::seconds(5)});
    REQUIRE(client.ok());
    return *std::move(client);
  }
  FrameSocket RawConnect() const {
    StatusOr<FileHandle> raw = ConnectUnix(Path());
    REQUIRE(raw.ok());
    return {*std::move(raw), std::chrono::seconds(5)};
  }

  TestHandler handler;
  Status served = Error(StatusCode::kInternal, "not served");

 private:
  ServeOptions options_;
  std::string folder_;
  FileHandle listener_;
  std::jthread thread_;
};

TaskRequest SomeRequest(std::size_t model_bytes = 100) {
  TaskRequest request;
  request.job = *JobId::Parse("heart-1");
  request.round = 2;
  request.phase = contracts::PhaseKind::kTrain;
  request.plan_text = HeartPlanText();
  request.model_file = Bytes(model_bytes, 3);
  return request;
}

StatusOr<TrainerMessage> ReadMessage(FrameSocket& socket) {
  const StatusOr<FrameHeader> header = socket.ReadHeader(1 << 20);
  if (!header.ok()) {
    return header.status();
  }
  const StatusOr<std::string> text = socket.ReadText(header->json_bytes);
  StatusOr<Bytes> payload = socket.ReadPayload(header->payload_bytes);
  REQUIRE((text.ok() && payload.ok()));
  return DecodeMessage(*text, *std::move(payload));
}

policy::Reason ReasonOf(const StatusOr<TrainerMessage>& message) {
  return message.ok() && std::holds_alternative<FailedMessage>(*message)
             ? std::get<FailedMessage>(*message).reason
             : policy::Reason::kNone;
}

}  // namespace

TEST_CASE("Trainer socket: a task of 6,000,000 bytes runs and its result comes back") {
  TestServer server;
  TrainerClient client = server.Connect();
  CHECK(client.hello().trainer.bytes[0] == 7);

  for (int repeat = 0; repeat < 2; ++repeat) {
    const StatusOr<TaskOutcome> outcome = client.RunTask(SomeRequest(6'000'000), {}, {});
    REQUIRE(outcome.ok());
    const auto& result = std::get<TaskResult>(*outcome);
    CHECK(result.rows == 10);
    const auto& numbers = std::get<TrainNumbers>(result.numbers);
    CHECK(numbers.loss_sum_micro == 42);
    REQUIRE(numbers.delta.size() == 1);
    CHECK(numbers.delta[0].values == std::vector<float>{0.5F});
    CHECK(server.handler.received == 6'000'000);
  }
}

TEST_CASE("Trainer socket: a refused task's payload is never given to the handler") {
  TestServer server;
  server.handler.refusal = FailedMessage{policy::Reason::kGrantPlan, 0, 0};
  TrainerClient client = server.Connect();

  const StatusOr<TaskOutcome> refused = client.RunTask(SomeRequest(6'000'000), {}, {});

  REQUIRE(refused.ok());
  CHECK(std::get<FailedMessage>(*refused).reason == policy::Reason::kGrantPlan);
  CHECK(server.handler.received == 0);
  server.handler.refusal.reset();
  CHECK(client.RunTask(SomeRequest(), {}, {}).ok());  // the connection is still good
}

TEST_CASE("Trainer socket: a stop cancels the task, with progress before it") {
  TestServer server({.progress_interval = std::chrono::milliseconds(1)});
  server.handler.wait_for_stop = true;
  TrainerClient client = server.Connect();
  std::stop_source stop;

  const StatusOr<TaskOutcome> outcome = client.RunTask(
      SomeRequest(),
      [&](const TaskProgress& told) {
        if (told.percent == 37) {
          stop.request_stop();
        }
      },
      stop.get_token());

  REQUIRE(outcome.ok());
  CHECK(std::get<FailedMessage>(*outcome).reason == policy::Reason::kCancelled);
  CHECK(server.handler.was_cancelled);
}

TEST_CASE("Trainer socket: a second task is refused as busy while one runs") {
  TestServer server;
  server.handler.wait_for_stop = true;
  TrainerClient first = server.Connect();
  TrainerClient second = server.Connect();
  std::stop_source stop;
  std::jthread runs([&] { CHECK(first.RunTask(SomeRequest(), {}, stop.get_token()).ok()); });
  FrameSocket waits(FileHandle(dup(server.handler.running.descriptor())), std::chrono::seconds(5));
  REQUIRE(*waits.Wait(std::chrono::seconds(5), -1) == Waited::kReadable);

  const StatusOr<TaskOutcome> outcome = second.RunTask(SomeRequest(6'000'000), {}, {});

  REQUIRE(outcome.ok());
  CHECK(std::get<FailedMessage>(*outcome).reason == policy::Reason::kBusy);
  stop.request_stop();
}

TEST_CASE("Trainer socket: an agent that goes away, and a server that stops, cancel the task") {
  for (const bool stop_server : {false, true}) {
    CAPTURE(stop_server);
    TestServer server;
    server.handler.wait_for_stop = true;
    TaskMessage task;
    task.job = *JobId::Parse("heart-1");
    task.round = 1;
    task.phase = contracts::PhaseKind::kTrain;
    {
      FrameSocket raw = server.RawConnect();
      REQUIRE(ReadMessage(raw).ok());  // hello
      REQUIRE(raw.Send(EncodeFrame(task)).ok());
      FrameSocket waits(FileHandle(dup(server.handler.running.descriptor())),
                        std::chrono::seconds(5));
      REQUIRE(*waits.Wait(std::chrono::seconds(5), -1) == Waited::kReadable);
      if (stop_server) {
        server.Stop();
        CHECK(ReadMessage(raw).status().code() == StatusCode::kUnavailable);
      }
    }
    server.Stop();
    CHECK(server.handler.was_cancelled);
    CHECK(server.served.ok());
  }
}

TEST_CASE("Trainer socket: broken frames are answered with a code and end the connection") {
  struct Case {
    const char* name;
    Bytes bytes;
    policy::Reason reason;
  };
  Bytes oversize;
  AppendU32(oversize, 20);
  AppendU64(oversize, UINT64_MAX);
  Bytes nonsense;
  AppendU32(nonsense, 2);
  AppendU64(nonsense, 0);
  nonsense.insert(nonsense.end(), {'{', '}'});
  const Case cases[] = {
      {"payload of 2^64 - 1 bytes", oversize, policy::Reason::kTooLarge},
      {"no type", nonsense, policy::Reason::kMalformed},
      {"a trainer's message", EncodeFrame(ProgressMessage{1}), policy::Reason::kMalformed},
  };
  TestServer server;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    FrameSocket raw = server.RawConnect();
    REQUIRE(ReadMessage(raw).ok());
    REQUIRE(raw.Send(c.bytes).ok());
    CHECK(ReasonOf(ReadMessage(raw)) == c.reason);
    CHECK(ReadMessage(raw).status().code() == StatusCode::kUnavailable);
  }
  CHECK(server.Connect().RunTask(SomeRequest(), {}, {}).ok());
}

TEST_CASE("Trainer client: a result that does not fit the plan is refused") {
  TestServer server;
  server.handler.answer.phase = contracts::PhaseKind::kStatistics;
  server.handler.answer.arrays = {{"count", {1}}};
  TrainerClient wrong_phase = server.Connect();
  CHECK(wrong_phase.RunTask(SomeRequest(), {}, {}).status().code() == StatusCode::kInvalidArgument);

  server.handler.answer = DeltaResult();
  server.handler.answer.tensors = Bytes(100'000);
  TrainerClient too_long = server.Connect();
  CHECK(too_long.RunTask(SomeRequest(), {}, {}).status().code() == StatusCode::kOutOfRange);

  server.handler.answer.tensors = Bytes(100);
  TrainerClient no_tensors = server.Connect();
  CHECK(no_tensors.RunTask(SomeRequest(), {}, {}).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Trainer client: nobody there, and a server of another user") {
  TestServer server;
  CHECK(
      TrainerClient::Connect({server.Path() + "x", {}, std::chrono::seconds(1)}).status().code() ==
      StatusCode::kUnavailable);
  CHECK(TrainerClient::Connect({server.Path(), geteuid() + 1, std::chrono::seconds(5)})
            .status()
            .code() == StatusCode::kPermissionDenied);
  CHECK(TrainerClient::Connect({server.Path(), geteuid(), std::chrono::seconds(5)}).ok());
}

TEST_CASE("ListenUnix: keeps its mode, replaces a dead socket, respects a live one and files") {
  TestServer server;
  struct stat info {};
  REQUIRE(stat(server.Path().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(ListenUnix(server.Path(), 0600).status().code() == StatusCode::kFailedPrecondition);

  const std::string other = server.Path() + "2";
  { CHECK(ListenUnix(other, 0660).ok()); }
  REQUIRE(stat(other.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0660);
  CHECK(ListenUnix(other, 0600).ok());

  const std::string file = server.Path() + "3";
  REQUIRE(WriteFileDurably(file, AsBytes("x")).ok());
  CHECK(ListenUnix(file, 0600).status().code() == StatusCode::kInvalidArgument);
  CHECK(FileExists(file));
  CHECK(ListenUnix("/tmp/" + std::string(200, 'a'), 0600).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace domicile::site_agent
