// An agent in a stranger's hands: asks a trainer for what no grant allows, and tries to get around
// the trainer from within the agent's own walls. Prints one line of JSON an attempt; exit 0 if all
// were refused and the controls, which are allowed, got through.
//
// usage: hostile_agent SOCKET FOLDER DATA_FILE
//
// FOLDER holds the documents of an approved task and of some that are not: plan.json,
// model.safetensors, facts.json {"job", "policy", "base_model", "phase", "round"}, good.grant,
// expired.grant, other-site.grant, other-trainer.grant, unknown-signer.grant.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "crypto/tree_digest.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/trainer/frame_socket.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {
namespace {

constexpr std::uint64_t kAnySize = std::uint64_t{1} << 30U;

bool failed_somewhere = false;

void Report(std::string_view name, std::string_view got, bool as_it_should) {
  failed_somewhere = failed_somewhere || !as_it_should;
  const Json line = JsonObject{{"attempt", name}, {"got", got}, {"as_it_should", as_it_should}};
  std::printf("%s\n", PrintJson(line).c_str());
}

[[noreturn]] void Die(std::string_view what) {
  std::fprintf(stderr, "hostile_agent: %s\n", std::string(what).c_str());
  std::exit(2);
}

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    Die(Message(value.status()));
  }
  return *std::move(value);
}

std::string Load(const std::string& folder, std::string_view name) {
  return Must(ReadFile(JoinPath(folder, name), kAnySize));
}

FrameSocket Connect(const std::string& path) {
  FrameSocket socket(Must(ConnectUnix(path)), std::chrono::seconds(20));
  const FrameHeader header = Must(socket.ReadHeader(0));
  const TrainerMessage hello = Must(DecodeMessage(Must(socket.ReadText(header.json_bytes)), {}));
  if (!std::holds_alternative<HelloMessage>(hello)) {
    Die("the first message is not hello");
  }
  return socket;
}

// What the trainer answers to a frame: a code, "RESULT", or "CLOSED".
std::string Ask(const std::string& path, const Bytes& frame) {
  FrameSocket socket = Connect(path);
  // An answer may come, and the connection end, before all is sent.
  const Status sent = socket.Send(frame);
  while (true) {
    const StatusOr<FrameHeader> header = socket.ReadHeader(kAnySize);
    if (!header.ok()) {
      return sent.ok() ? "CLOSED" : "CLOSED EARLY";
    }
    const std::string text = Must(socket.ReadText(header->json_bytes));
    const TrainerMessage answer =
        Must(DecodeMessage(text, Must(socket.ReadPayload(header->payload_bytes))));
    if (const auto* failed = std::get_if<FailedMessage>(&answer)) {
      return header->payload_bytes == 0 ? std::string(policy::Code(failed->reason)) : "RESULT";
    }
    if (std::holds_alternative<ResultMessage>(answer)) {
      return "RESULT";
    }
  }
}

TaskMessage ApprovedTask(const std::string& folder) {
  const Json facts = Must(ParseJson(Load(folder, "facts.json")));
  JsonReader reader(facts, "facts.json");
  TaskMessage task;
  task.job = Must(JobId::Parse(reader.String("job")));
  task.effective_policy = Must(ParseDigest(reader.String("policy")));
  task.base_model = Must(ParseDigest(reader.String("base_model")));
  task.round = static_cast<RoundNumber>(reader.Int("round", 1, 1000));
  const std::string phase = reader.String("phase");
  task.phase =
      phase == "statistics" ? contracts::PhaseKind::kStatistics : contracts::PhaseKind::kTrain;
  if (!reader.Finish().ok()) {
    Die("facts.json");
  }
  task.plan = Load(folder, "plan.json");
  task.grant = Load(folder, "good.grant");
  const std::string model = Load(folder, "model.safetensors");
  task.model_file = ToBytes(model);
  task.model = crypto::TreeDigest(task.model_file);
  return task;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) {
    Die("the plan does not hold " + std::string(from));
  }
  return text.replace(at, from.size(), to);
}

void Flip(Digest& digest) { digest.bytes[0] ^= 1U; }

void AskOutsideTheGrant(const std::string& socket, const std::string& folder) {
  const TaskMessage good = ApprovedTask(folder);
  struct Attempt {
    std::string_view name;
    std::string_view wanted;
    std::function<void(TaskMessage&)> change;
  };
  const auto grant = [&folder](const char* file) {
    return [&folder, file](TaskMessage& task) { task.grant = Load(folder, file); };
  };
  const Attempt attempts[] = {
      {"no grant", "GRANT-SIGNATURE", [](TaskMessage& t) { t.grant.clear(); }},
      {"a changed grant", "GRANT-SIGNATURE",
       [](TaskMessage& t) { t.grant = Replaced(t.grant, "\"site\":\"", "\"site\":\"x"); }},
      {"signed by a stranger", "GRANT-SIGNATURE", grant("unknown-signer.grant")},
      {"expired", "GRANT-EXPIRED", grant("expired.grant")},
      {"another site's grant", "GRANT-DATASET", grant("other-site.grant")},
      {"another trainer's grant", "GRANT-TRAINER", grant("other-trainer.grant")},
      {"an altered plan", "GRANT-PLAN",
       [](TaskMessage& t) { t.plan = Replaced(t.plan, "\"local_steps\":", "\"local_steps\":1"); }},
      {"another job", "GRANT-PLAN", [](TaskMessage& t) { t.job = *JobId::Parse("other"); }},
      {"another dataset", "DATASET-UNKNOWN",
       [](TaskMessage& t) { t.plan = Replaced(t.plan, "\"dataset\":\"", "\"dataset\":\"x"); }},
      {"no plan", "MALFORMED", [](TaskMessage& t) { t.plan = "{}"; }},
      {"replayed under another policy", "GRANT-POLICY",
       [](TaskMessage& t) { Flip(t.effective_policy); }},
      {"another base model", "GRANT-BASE-MODEL",
       [](TaskMessage& t) {
         Flip(t.base_model);
         t.model = t.base_model;
       }},
      {"a first model that is not the base model", "GRANT-BASE-MODEL",
       [](TaskMessage& t) {
         t.model_file.back() ^= 1U;
         t.model = crypto::TreeDigest(t.model_file);
       }},
      {"a model that does not have its digest", "MODEL-DIGEST",
       [](TaskMessage& t) { t.model_file.back() ^= 1U; }},
      {"a round beyond the plan", "ROUND-NOT-OPEN", [](TaskMessage& t) { t.round = 1'000'000; }},
      {"a phase the round does not have", "ROUND-NOT-OPEN",
       [](TaskMessage& t) { t.phase = contracts::PhaseKind::kEvaluate; }},
      {"no model", "MODEL-SHAPE", [](TaskMessage& t) { t.model_file.clear(); }},
      {"a model of 10 MB", "TOO-LARGE", [](TaskMessage& t) { t.model_file.resize(10'000'000); }},
  };
  for (const Attempt& attempt : attempts) {
    TaskMessage task = good;
    attempt.change(task);
    const std::string got = Ask(socket, EncodeFrame(task));
    Report(attempt.name, got, got == attempt.wanted);
  }
}

void SendBrokenFrames(const std::string& socket, const TaskMessage& good) {
  Bytes oversize_payload;
  AppendU32(oversize_payload, 20);
  AppendU64(oversize_payload, UINT64_MAX);
  const std::string too_large = Ask(socket, oversize_payload);
  Report("a payload of 2^64 - 1 bytes", too_large, too_large == "TOO-LARGE");

  Bytes oversize_json;
  AppendU32(oversize_json, UINT32_MAX);
  AppendU64(oversize_json, 0);
  const std::string closed = Ask(socket, oversize_json);
  Report("a text of 4 GiB", closed, closed.starts_with("CLOSED"));

  // The approved task itself, with one field more.
  const Bytes frame = EncodeFrame(good);
  const std::uint32_t length = ReadU32(frame);
  const std::string json(frame.begin() + kFrameHeaderBytes,
                         frame.begin() + kFrameHeaderBytes + static_cast<std::ptrdiff_t>(length));
  const std::string wider = json.substr(0, json.size() - 1) + R"(,"command":"cat"})";
  Bytes changed;
  AppendU32(changed, static_cast<std::uint32_t>(wider.size()));
  AppendU64(changed, good.model_file.size());
  changed.insert(changed.end(), wider.begin(), wider.end());
  changed.insert(changed.end(), good.model_file.begin(), good.model_file.end());
  const std::string malformed = Ask(socket, changed);
  Report("a field more", malformed, malformed == "MALFORMED");
}

std::string OpenData(const std::string& path) {
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.IsOpen() ? "opened" : errno == EACCES ? "EACCES" : "another error";
}

// In the agent's own walls, which the agent puts up before anyone can speak to it.
void TryAroundTheTrainer(const std::string& socket, const std::string& data) {
  const std::string before = OpenData(data);
  Report("control: the data file before the walls", before, before == "opened");
  if (!Apply(AgentLockdown({})).ok()) {
    Die("the walls do not stand");
  }
  const std::string after = OpenData(data);
  Report("the data file", after, after == "EACCES");

  ucred trainer{};
  socklen_t length = sizeof trainer;
  const FileHandle connection = Must(ConnectUnix(socket));
  if (getsockopt(connection.descriptor(), SOL_SOCKET, SO_PEERCRED, &trainer, &length) != 0) {
    Die("who is the trainer");
  }
  const bool traced = ptrace(PTRACE_SEIZE, trainer.pid, nullptr, nullptr) == 0;
  Report("tracing the trainer", traced ? "traced" : "refused", !traced);
  const std::string memory = OpenData("/proc/" + std::to_string(trainer.pid) + "/mem");
  Report("the trainer's memory", memory, memory == "EACCES");
  const std::string descriptors = OpenData("/proc/" + std::to_string(trainer.pid) + "/fd");
  Report("the trainer's descriptors", descriptors, descriptors == "EACCES");
}

int Main(const std::string& socket, const std::string& folder, const std::string& data) {
  const TaskMessage good = ApprovedTask(folder);
  const auto control = [&](std::string_view name) {
    const std::string got = Ask(socket, EncodeFrame(good));
    Report(name, got, got == "RESULT");
  };
  control("control: the approved task");
  AskOutsideTheGrant(socket, folder);
  SendBrokenFrames(socket, good);
  TryAroundTheTrainer(socket, data);
  control("control: the approved task, after all this");
  return failed_somewhere ? 1 : 0;
}

}  // namespace
}  // namespace domicile::site_agent

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: hostile_agent SOCKET FOLDER DATA_FILE\n");
    return 2;
  }
  return domicile::site_agent::Main(argv[1], argv[2], argv[3]);
}
