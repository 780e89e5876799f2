// domicile-trainer with a `[program]` that is hostile (tests/support/hostile_program.cc): nothing
// gets out, nobody is hurt, and the next task is done as if nothing had been.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "site_agent/trainer/internal/program_run.h"
#include "site_agent/trainer/testing_program.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // it reserves more addresses than any limit
#else
constexpr bool kSanitized = false;
#endif

constexpr const char* kRawJob = R"(name = "Foreign"
purpose = "scientific_research"
dataset = "heart"
recipients = ["sites"]
[model]
kind = "raw"
[[model.tensor]]
name = "dense.weight"
shape = [3, 2]
[[model.tensor]]
name = "dense.bias"
shape = [2]
[training]
local_steps = 5
batch = 16
[rounds]
count = 40
quorum = 2
[update]
view = "plain"
clip_l2 = 4.0
scale_bits = 20
weight = "examples"
)";

// Somebody on the network of this host.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(socket_.descriptor(), generic, length) == 0);
    REQUIRE(listen(socket_.descriptor(), 8) == 0);
    REQUIRE(getsockname(socket_.descriptor(), generic, &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  std::string Port() const { return std::to_string(port_); }

 private:
  FileHandle socket_;
  std::uint16_t port_ = 0;
};

// A site whose trainer has the hostile program, which behaves by the round's mode.
class HostileSite {
 public:
  explicit HostileSite(std::vector<std::string> modes, const std::string& limits = {},
                       const std::string& more = {})
      : site_({}, Tables(modes, limits, listener_.Port(), more)) {
    const StatusOr<contracts::Plan> plan = contracts::PlanFromJobFile(kRawJob, "raw.toml");
    REQUIRE_MESSAGE(plan.ok(), Message(plan.status()));
    site_.job.Become(*plan);
  }

  static std::string Tables(const std::vector<std::string>& modes, const std::string& limits,
                            const std::string& port, const std::string& more) {
    std::string command = "\"" + Program("hostile_program") + "\"";
    for (const std::string& mode : modes) {
      command += ", \"" + mode + "\"";
    }
    return "[program]\ncommand = [" + command + ", \"--\", \"" + port + "\", \"/etc/hostname\"]\n" +
           more + "[program.limits]\n" +
           (kSanitized ? "memory_bytes = 70368744177664\n" : "memory_bytes = 2147483648\n") +
           limits;
  }

  void Serve(bool as_nobody = false) {
    trainer_.emplace(site_.Start(as_nobody));
    REQUIRE(trainer_->Line() == "ready: unix:" + site_.In("t.sock"));
    site_.Approve();
    client_.emplace(site_.Connect());
  }

  TaskOutcome Round(RoundNumber round, std::stop_token stop = {},
                    const ProgressSink& progress = {}) {
    StatusOr<TaskOutcome> outcome =
        client_->RunTask(site_.Request(round, PhaseKind::kTrain), progress, std::move(stop));
    REQUIRE_MESSAGE(outcome.ok(), Message(outcome.status()));
    return *std::move(outcome);
  }

  // What the program said; stays at the site.
  std::string ProgramLog() const {
    const StatusOr<std::string> text = ReadFile(site_.In("state/program.log"), 1 << 26);
    REQUIRE(text.ok());
    return *text;
  }

  // How many processes have this site's listener among their arguments.
  std::size_t ProgramsAlive() const {
    std::size_t alive = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      std::ifstream file(entry.path() / "cmdline");
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      alive += text.starts_with(Program("hostile_program")) &&
                       text.find('\0' + listener_.Port() + '\0') != std::string::npos
                   ? 1
                   : 0;
    }
    return alive;
  }

  bool ProgramsCome(std::size_t wanted) const {
    for (int i = 0; i < 500; ++i) {
      if (wanted == 0 ? ProgramsAlive() == 0 : ProgramsAlive() >= wanted) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  TestSite& Site() { return site_; }
  Process& Trainer() { return *trainer_; }
  const Listener& Outside() const { return listener_; }

 private:
  Listener listener_;
  TestSite site_;
  std::optional<Process> trainer_;
  std::optional<TrainerClient> client_;
};

bool IsHonest(const TaskOutcome& outcome) {
  const auto* result = std::get_if<TaskResult>(&outcome);
  if (result == nullptr || result->rows != 10) {
    return false;
  }
  const auto& numbers = std::get<TrainNumbers>(result->numbers);
  return numbers.delta.size() == 2 && numbers.delta[0].name == "dense.weight" &&
         numbers.delta[0].values == std::vector<float>(6, 0.5F) &&
         numbers.delta[1].values == std::vector<float>(2, 0.5F) && numbers.examples == 10;
}

Reason ReasonOf(const TaskOutcome& outcome) {
  const auto* failed = std::get_if<FailedMessage>(&outcome);
  return failed == nullptr ? Reason::kNone : failed->reason;
}

// The lines `NAME word` of a report.
std::vector<std::string> WaysThatAre(std::string_view word, const std::string& report) {
  std::vector<std::string> names;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" " + std::string(word))) {
      names.push_back(line.substr(0, line.find(' ')));
    }
  }
  return names;
}

}  // namespace

TEST_CASE("Foreign program: inside its walls only its data and its scratch are open") {
  for (const bool as_nobody : {false, true}) {
    if (as_nobody && geteuid() != 0) {
      continue;
    }
    CAPTURE(as_nobody);
    HostileSite hostile({"escape"}, "tasks = 300\n");
    hostile.Serve(as_nobody);

    const TaskOutcome outcome = hostile.Round(1);

    const std::string report = hostile.ProgramLog();
    CAPTURE(report);
    CHECK(IsHonest(outcome));
    CHECK(WaysThatAre("shut", report).size() >= 20 - (kSanitized ? 1 : 0));
    std::vector<std::string> open = WaysThatAre("open", report);
    std::erase_if(open, [](const std::string& way) { return kSanitized && way == "memory"; });
    CHECK(open == std::vector<std::string>{"read_data", "write_scratch"});
  }
}

TEST_CASE("Foreign program: control, the same program outside the walls gets through") {
  const Listener listener;
  const TestSite site;
  std::filesystem::create_directory(site.In("run"));
  for (const char* name : {"run/delta", "run/answer", "run/model", "run/table"}) {
    site.Write(name, "x");
  }
  site.Write("task.json", PrintJson(JsonObject{
                              {"round", 1},
                              {"tensors", JsonArray{}},
                              {"data", JsonArray{site.In("run/table")}},
                              {"model", site.In("run/model")},
                              {"delta", site.In("run/delta")},
                              {"answer", site.In("run/answer")},
                          }));
  REQUIRE(setenv("DOMICILE_TASK", site.In("task.json").c_str(), 1) == 0);

  Process outside({Program("hostile_program"), "escape", "--", listener.Port(), "/etc/hostname"},
                  false);
  const std::string report = outside.Rest();

  CAPTURE(report);
  CHECK(outside.Wait() == 0);
  unlink("/tmp/domicile-hostile-program");
  unlink("/tmp/domicile-scratch");
  CHECK(WaysThatAre("open", report).size() == 22);
  CHECK(WaysThatAre("shut", report).empty());
}

TEST_CASE("Foreign program: what a run leaves in its scratch, the next does not find") {
  HostileSite hostile({"remember"});
  hostile.Serve();

  for (const RoundNumber round : {1U, 2U, 3U}) {
    CHECK(IsHonest(hostile.Round(round)));
    CHECK(hostile.ProgramLog() == "scratch shut\n");
  }
}

TEST_CASE("Foreign program: a run on one dataset opens no other that the trainer serves") {
  HostileSite hostile({"escape"});
  const TestSite& site = hostile.Site();
  site.Write("other.csv", "a\n1\n");
  site.Write("other.toml",
             "[dataset]\nalias = \"other\"\nversion = \"1\"\nfiles = [\"other.csv\"]\n");
  std::string config = ReadFile(site.In("trainer.toml"), 1 << 20).value();
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>("\"dataset.toml\"", "\"dataset.toml\", \"other.toml\""),
        {"/etc/hostname", site.In("other.csv") + "\", \"" + site.In("table.csv")}}) {
    config.replace(config.find(from), from.size(), to);
  }
  site.Write("trainer.toml", config);
  hostile.Serve();

  const TaskOutcome outcome = hostile.Round(1);

  const std::string report = hostile.ProgramLog();
  CAPTURE(report);
  CHECK(IsHonest(outcome));
  CHECK(report.find("read_forbidden shut\nread_forbidden open\n") != std::string::npos);
}

TEST_CASE("Foreign program: an answer that is not the plan's is refused by what is wrong with it") {
  struct Case {
    const char* mode;
    Reason reason;
  };
  const std::vector<Case> cases = {
      {"extra_tensor", Reason::kModelShape}, {"other_name", Reason::kModelShape},
      {"other_shape", Reason::kModelShape},  {"garbage", Reason::kModelShape},
      {"not_finite", Reason::kNotFinite},    {"many_rows", Reason::kTrainerFailed},
      {"no_rows", Reason::kNoExamples},      {"more_keys", Reason::kTrainerFailed},
      {"die", Reason::kTrainerFailed},       {"text_in_number", Reason::kTrainerFailed},
      {"fail", Reason::kTrainerFailed},      {"silent", Reason::kTrainerFailed},
      {"much", Reason::kTooLarge},           {"honest", Reason::kNone}};
  std::vector<std::string> modes;
  for (const Case& c : cases) {
    modes.emplace_back(c.mode);
  }
  HostileSite hostile(modes, {}, {});
  hostile.Serve();

  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].mode);
    const TaskOutcome outcome = hostile.Round(static_cast<RoundNumber>(i + 1));
    CHECK(policy::Code(ReasonOf(outcome)) == policy::Code(cases[i].reason));
    CHECK(IsHonest(outcome) == (cases[i].reason == Reason::kNone));
  }
  CHECK(hostile.ProgramsAlive() == 0);
}

TEST_CASE("Foreign program: a flood of output and progress is cut, and only whole per cent pass") {
  HostileSite hostile({"flood", "hang"}, "output_bytes = 100000\n");
  hostile.Serve();
  std::vector<std::uint32_t> seen;
  std::stop_source stop;

  const TaskOutcome flooded =
      hostile.Round(1, {}, [&](const TaskProgress& told) { seen.push_back(told.percent); });
  const std::size_t log_bytes = hostile.ProgramLog().size();
  const TaskOutcome held = hostile.Round(2, stop.get_token(), [&](const TaskProgress& told) {
    seen.push_back(told.percent);
    if (told.percent == 30) {
      stop.request_stop();
    }
  });

  CHECK(IsHonest(flooded));
  CHECK(log_bytes == 100000);
  CHECK(ReasonOf(held) == Reason::kCancelled);  // and so 30 per cent had arrived
  CHECK(std::all_of(seen.begin(), seen.end(), [](auto p) { return p == 0 || p == 30; }));
  CHECK(hostile.ProgramsAlive() == 0);
}

TEST_CASE("Foreign program: one that hangs ends when its time is up, and so does a fork bomb") {
  HostileSite hostile({"hang", "fork_bomb", "outlive", "honest"},
                      "wall_seconds = 2\ntasks = 40\nprocesses = true\n");
  hostile.Serve();

  CHECK(ReasonOf(hostile.Round(1)) == Reason::kTrainerFailed);
  CHECK(hostile.ProgramsAlive() == 0);
  std::size_t most = 0;
  {
    std::jthread watch([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        most = std::max(most, hostile.ProgramsAlive());
      }
    });
    CHECK(ReasonOf(hostile.Round(2)) == Reason::kTrainerFailed);
  }
  CHECK(most > 5);  // the bomb went off,
  CHECK(most <= 40);
  CHECK(hostile.ProgramsAlive() == 0);  // and nothing of it is left
  CHECK(IsHonest(hostile.Round(3)));
  CHECK(hostile.ProgramsAlive() == 0);
  CHECK(IsHonest(hostile.Round(4)));
}

TEST_CASE("Foreign program: a killed trainer takes the running program with it") {
  HostileSite hostile({"hang"});
  hostile.Serve();
  std::jthread asking([&](const std::stop_token& stop) {
    TrainerClient client = hostile.Site().Connect();
    const auto ended = client.RunTask(hostile.Site().Request(1, PhaseKind::kTrain), {}, stop);
    CHECK_FALSE(ended.ok());
  });
  REQUIRE(hostile.ProgramsCome(1));

  hostile.Trainer().Signal(SIGKILL);

  CHECK(hostile.ProgramsCome(0));
}

TEST_CASE("Foreign program: a grant binds every file it is made of") {
  HostileSite hostile({"honest"}, {}, "files = [\"lib/rates.txt\"]\n");
  std::filesystem::create_directory(hostile.Site().In("lib"));
  hostile.Site().Write("lib/rates.txt", "0.1\n");
  hostile.Serve();
  const Digest approved = hostile.Site().job.body.trainer;
  CHECK(IsHonest(hostile.Round(1)));

  // While it serves, the copy that was approved runs.
  hostile.Site().Write("lib/rates.txt", "0.2\n");
  CHECK(ReadFile(hostile.Site().In("state/program/code/lib/rates.txt"), 100).value() == "0.1\n");
  hostile.Trainer().Signal(SIGTERM);
  CHECK(hostile.Trainer().Wait() == 0);
  Process again = hostile.Site().Start();
  REQUIRE(again.Line().starts_with("ready: "));
  TrainerClient client = hostile.Site().Connect();

  CHECK(client.hello().trainer != approved);
  const auto refused = client.RunTask(hostile.Site().Request(2, PhaseKind::kTrain), {}, {});
  REQUIRE(refused.ok());
  CHECK(ReasonOf(*refused) == Reason::kGrantTrainer);
}

TEST_CASE("Foreign program: without one, a raw plan is refused") {
  TestSite site;
  const StatusOr<contracts::Plan> plan = contracts::PlanFromJobFile(kRawJob, "raw.toml");
  REQUIRE_MESSAGE(plan.ok(), Message(plan.status()));
  site.job.Become(*plan);
  Process trainer = site.Start();
  REQUIRE(trainer.Line().starts_with("ready: "));
  site.Approve();
  TrainerClient client = site.Connect();

  const auto outcome = client.RunTask(site.Request(1, PhaseKind::kTrain), {}, {});

  REQUIRE(outcome.ok());
  CHECK(ReasonOf(*outcome) == Reason::kTrainerFailed);
}

TEST_CASE("Foreign program: a configuration that cannot work is refused at the start") {
  struct Case {
    const char* name;
    std::string table;
    int exit_code;
  };
  const std::vector<Case> cases = {
      {"a script", "[program]\ncommand = [\"/usr/bin/ldd\"]\n", 3},
      {"no such program", "[program]\ncommand = [\"/usr/bin/no-such\"]\n", 3},
      {"a relative name", "[program]\ncommand = [\"python3\"]\n", 2},
      {"nothing", "[program]\ncommand = []\n", 2},
      {"a detour", "[program]\ncommand = [\"/bin/true\"]\nfiles = [\"../x\"]\n", 2},
      {"no such file", "[program]\ncommand = [\"/bin/true\"]\nfiles = [\"x.py\"]\n", 3},
      {"no such folder", "[program]\ncommand = [\"/bin/true\"]\nlibraries = [\"/no/such\"]\n", 3},
      {"a wrong key", "[program]\ncommand = [\"/bin/true\"]\nfile = [\"x.py\"]\n", 2}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(TestSite({}, c.table).Start().Wait() == c.exit_code);
  }
}

TEST_CASE("Progress of a program: only lines of one rising number count") {
  struct Case {
    const char* name;
    std::string_view bytes;
    std::uint32_t percent;
  };
  for (const Case& c : {Case{"one", "7\n", 7}, Case{"rising", "1\n2\n50\n", 50},
                        Case{"never falls", "50\n20\n", 50}, Case{"unfinished", "99", 0},
                        Case{"too large", "101\n1000\n99999999999\n", 0},
                        Case{"signs", "-5\n+6\n", 0}, Case{"text", "a secret\n12 x\n", 0},
                        Case{"empty lines", "\n\n3\n\n", 3}, Case{"hundred", "100\n", 100}}) {
    CAPTURE(c.name);
    internal::ProgressLines lines;
    CHECK(lines.Take(c.bytes) == (c.percent > 0));
    CHECK(lines.Percent() == c.percent);
  }
}

}  // namespace domicile::site_agent
