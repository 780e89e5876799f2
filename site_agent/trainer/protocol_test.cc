#include "site_agent/trainer/protocol.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"

namespace domicile::site_agent {
namespace {

Digest DigestOf(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

contracts::Plan HeartPlan() {
  const std::string path = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/job.toml";
  const StatusOr<std::string> text = ReadFile(path, 1 << 20);
  REQUIRE(text.ok());
  StatusOr<contracts::Plan> plan = contracts::PlanFromJobFile(*text, path);
  REQUIRE(plan.ok());
  return *std::move(plan);
}

HelloMessage SomeHello() {
  HelloMessage hello;
  hello.versions = {1, 2};
  hello.trainer = DigestOf(1);
  hello.datasets = {{*DatasetAlias::Parse("heart"), DigestOf(2)}};
  hello.sandbox = {SandboxLayer::kNetworkNamespace, SandboxLayer::kLandlock};
  hello.landlock_abi = 7;
  hello.canary = 30;
  return hello;
}

TaskMessage SomeTask() {
  TaskMessage task;
  task.job = *JobId::Parse("heart-1");
  task.round = 3;
  task.phase = contracts::PhaseKind::kTrain;
  task.grant = "grant\n\n\u2014 x y\n";
  task.plan = "{}";
  task.effective_policy = DigestOf(3);
  task.base_model = DigestOf(4);
  task.model = DigestOf(5);
  task.model_file = {1, 2, 3};
  return task;
}

ResultMessage SomeStatistics() {
  ResultMessage result;
  result.phase = contracts::PhaseKind::kStatistics;
  result.rows = 202;
  result.arrays = {{"count", {1, 2}}, {"sum", {-3, INT64_MAX}}, {"sum_squares", {INT64_MIN, 0}}};
  result.records_apart = 12;
  return result;
}

ResultMessage SomeTraining() {
  ResultMessage result;
  result.phase = contracts::PhaseKind::kTrain;
  result.rows = 5;
  result.examples = 6;
  result.loss_sum_micro = -7;
  result.tensors = {9, 9};
  return result;
}

StatusOr<TrainerMessage> DecodeFrame(const Bytes& frame) {
  const StatusOr<FrameHeader> header = ParseFrameHeader(frame, 1000);
  if (!header.ok()) {
    return header.status();
  }
  const auto begin = frame.begin() + static_cast<std::ptrdiff_t>(kFrameHeaderBytes);
  const auto middle = begin + static_cast<std::ptrdiff_t>(header->json_bytes);
  CHECK(static_cast<std::uint64_t>(frame.end() - middle) == header->payload_bytes);
  return DecodeMessage(std::string(begin, middle), Bytes(middle, frame.end()));
}

}  // namespace

TEST_CASE("Trainer protocol: every message reads back as it was") {
  ResultMessage no_loss = SomeTraining();
  no_loss.loss_sum_micro.reset();
  const TrainerMessage messages[] = {SomeHello(),
                                     SomeTask(),
                                     ProgressMessage{37},
                                     SomeStatistics(),
                                     SomeTraining(),
                                     no_loss,
                                     FailedMessage{policy::Reason::kDatasetInvalid, 4, 2},
                                     CancelMessage{}};
  for (const TrainerMessage& message : messages) {
    CAPTURE(message.index());
    const StatusOr<TrainerMessage> read = DecodeFrame(EncodeFrame(message));
    REQUIRE(read.ok());
    CHECK(*read == message);
  }
}

TEST_CASE("Trainer protocol: the bytes are those of the page") {
  const std::string json = R"({"percent":37,"type":"progress"})";
  Bytes wanted = {32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  wanted.insert(wanted.end(), json.begin(), json.end());
  CHECK(EncodeFrame(ProgressMessage{37}) == wanted);

  const ProgressMessage figures = {
      37, TrainFigures{52'000, 412'345, 12, {{49, 3'000'000}, {0, 3'000'000}}, 3, 423'456}};
  const std::string long_json =
      R"({"epochs":3,"examples_per_second":52000,"loss_micro":412345,"percent":37,)"
      R"("replicas":[[49,3000000],[0,3000000]],"stall_permille":12,"type":"progress",)"
      R"("validation_micro":423456})";
  const Bytes frame_of_figures = EncodeFrame(figures);
  CHECK(AsText(ByteSpan(frame_of_figures).subspan(kFrameHeaderBytes)) == long_json);
  CHECK(std::get<ProgressMessage>(*DecodeMessage(long_json, {})) == figures);
  CHECK(ProgressText(figures) ==
        "37 %, 52000 examples/s, loss 0.412345, after 3 epochs validation loss 0.423456, 1.2 % "
        "waiting for input, replica 0: 4.9 % adding "
        "up, 3 MB, replica 1: 0.0 % adding up, 3 MB");
  CHECK(ProgressText({5}) == "5 %");

  ResultMessage result = SomeStatistics();
  result.arrays = {{"count", {258}}};
  const Bytes frame = EncodeFrame(result);
  const Bytes payload(frame.end() - 8, frame.end());
  CHECK(payload == Bytes{2, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("Trainer protocol: messages that break the page are refused") {
  struct Case {
    const char* name;
    const char* json;
    std::size_t payload;
  };
  const Case cases[] = {
      {"not JSON", "{", 0},
      {"no object", "[]", 0},
      {"no type", "{}", 0},
      {"unknown type", R"({"type":"shell"})", 0},
      {"unknown key", R"({"type":"progress","percent":1,"note":"x"})", 0},
      {"key twice", R"({"type":"progress","percent":1,"percent":2})", 0},
      {"over 100", R"({"type":"progress","percent":101})", 0},
      {"fraction", R"({"type":"progress","percent":1.5})", 0},
      {"half of the figures", R"({"type":"progress","percent":1,"stall_permille":1})", 0},
      {"a share above the whole",
       R"({"type":"progress","percent":1,"examples_per_second":1,"stall_permille":1001,"replicas":[]})",
       0},
      {"a replica of three numbers",
       R"({"type":"progress","percent":1,"examples_per_second":1,"stall_permille":1,"replicas":[[1,2,3]]})",
       0},
      {"a part of an epoch",
       R"({"type":"progress","percent":1,"examples_per_second":1,"stall_permille":1,"replicas":[],"epochs":0.5})",
       0},
      {"epochs below 0",
       R"({"type":"progress","percent":1,"examples_per_second":1,"stall_permille":1,"replicas":[],"epochs":-1})",
       0},
      {"a validation loss in words",
       R"({"type":"progress","percent":1,"examples_per_second":1,"stall_permille":1,"replicas":[],"validation_micro":"low"})",
       0},
      {"payload where none belongs", R"({"type":"progress","percent":1})", 1},
      {"unlisted reason", R"({"type":"failed","reason":9999,"rows_read":0,"rows_refused":0})", 0},
      {"no reason", R"({"type":"failed","reason":0,"rows_read":0,"rows_refused":0})", 0},
      {"negative rows", R"({"type":"failed","reason":89,"rows_read":-1,"rows_refused":0})", 0},
      {"free text", R"({"type":"failed","reason":89,"rows_read":0,"rows_refused":0,"m":"a"})", 0},
      {"array not listed",
       R"({"type":"result","phase":"evaluate","rows":1,"arrays":[["names",1]]})", 8},
      {"array twice",
       R"({"type":"result","phase":"evaluate","rows":1,"arrays":[["sum",1],["sum",1]]})", 16},
      {"payload too short", R"({"type":"result","phase":"evaluate","rows":1,"arrays":[["sum",2]]})",
       8},
      {"payload too long", R"({"type":"result","phase":"evaluate","rows":1,"arrays":[["sum",1]]})",
       16},
      {"half a number", R"({"type":"result","phase":"evaluate","rows":1,"arrays":[["sum",1]]})",
       12},
      {"length overflows",
       R"({"type":"result","phase":"evaluate","rows":1,"arrays":[["sum",2305843009213693952]]})",
       0},
      {"arrays with a delta",
       R"({"type":"result","phase":"train","rows":1,"examples":1,"arrays":[["sum",1]]})", 8},
      {"apart outside statistics",
       R"({"type":"result","phase":"evaluate","rows":1,"arrays":[],"records_apart":1})", 0},
      {"unknown phase", R"({"type":"result","phase":"dump","rows":1,"arrays":[]})", 0},
      {"unknown wall",
       R"({"type":"hello","versions":[1],"trainer":"","datasets":[],"sandbox":["vm"],)"
       R"("landlock_abi":1,"canary":1})",
       0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const StatusOr<TrainerMessage> read = DecodeMessage(c.json, Bytes(c.payload));
    CHECK(read.status().code() == StatusCode::kInvalidArgument);
    CHECK_FALSE(DecodeHead(c.json, c.payload).ok());
  }
}

TEST_CASE("Trainer protocol: a frame's lengths are bounded before anything is allocated") {
  Bytes header;
  AppendU32(header, 10);
  AppendU64(header, 1001);
  CHECK(ParseFrameHeader(header, 1000).status().code() == StatusCode::kOutOfRange);
  CHECK(ParseFrameHeader(header, 1001).ok());

  for (const std::uint32_t length : {0U, kMaxMessageJson + 1, UINT32_MAX}) {
    Bytes wrong;
    AppendU32(wrong, length);
    AppendU64(wrong, 0);
    CHECK(ParseFrameHeader(wrong, 1000).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Trainer protocol: a result must have the phase, names and lengths of the plan") {
  const contracts::Plan plan = HeartPlan();
  ResultMessage good;
  good.phase = contracts::PhaseKind::kEvaluate;
  for (const ArraySpec& spec : ResultArrays(plan, good.phase)) {
    good.arrays.push_back({std::string(spec.name), std::vector<std::int64_t>(spec.length)});
  }
  ResultMessage longer = good;
  longer.arrays.back().values.push_back(1);
  ResultMessage swapped = good;
  std::swap(swapped.arrays[0], swapped.arrays[2]);
  ResultMessage fewer = good;
  fewer.arrays.pop_back();

  CHECK(CheckResult(plan, contracts::PhaseKind::kEvaluate, good).ok());
  CHECK_FALSE(CheckResult(plan, contracts::PhaseKind::kStatistics, good).ok());
  CHECK_FALSE(CheckResult(plan, contracts::PhaseKind::kEvaluate, longer).ok());
  CHECK_FALSE(CheckResult(plan, contracts::PhaseKind::kEvaluate, swapped).ok());
  CHECK_FALSE(CheckResult(plan, contracts::PhaseKind::kEvaluate, fewer).ok());
  CHECK(MaxResultBytes(plan, contracts::PhaseKind::kStatistics) == 8 * 3 * 13);
  CHECK(MaxResultBytes(plan, contracts::PhaseKind::kEvaluate) == 8 * (1 + 2 + 1 + 2000));
  CHECK(MaxResultBytes(plan, contracts::PhaseKind::kTrain) == 4 * 14 + 65536 + 2 * 512);
}

}  // namespace domicile::site_agent
