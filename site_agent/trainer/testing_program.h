// Tests only: the real programs as processes, and a site's folder for domicile-trainer.
#pragma once

#include <array>
#include <csignal>
#include <cstdlib>
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

namespace domicile::site_agent {

inline std::string Program(std::string_view name) {
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
  Process(Process&& other) noexcept
      : child_(std::exchange(other.child_, -1)), output_(std::move(other.output_)) {}
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
  // `extra` goes into `[trainer]`, `tables` to the end of its configuration.
  explicit TestSite(std::string_view extra = {}, std::string_view tables = {}) {
    std::string name = "/tmp/domicile-program-XXXXXX";
    folder_ = mkdtemp(name.data());
    REQUIRE(chmod(folder_.c_str(), 0777) == 0);
    const StatusOr<std::string> table = ReadFile(ExampleFile("data/cleveland.csv"), 1 << 20);
    REQUIRE(table.ok());
    Write("table.csv", *table);
    Write("dataset.toml",
          "[dataset]\nalias = \"heart\"\nversion = \"1\"\nfiles = [\"table.csv\"]\n"
          "test_every = 3\n");
    Write("trainer.toml", Config("state", "t.sock", extra, tables));
    job.body.not_after = SystemClock().Now() + std::chrono::hours(1);
  }
  ~TestSite() { std::system(("rm -rf '" + folder_ + "'").c_str()); }
  TestSite(const TestSite&) = delete;
  TestSite& operator=(const TestSite&) = delete;

  std::string Config(const std::string& state, const std::string& socket, std::string_view extra,
                     std::string_view tables) const {
    return "[trainer]\nfederation = \"heart.example\"\nsite = \"cleveland\"\nstate = \"" + state +
           "\"\nsocket = \"" + socket + "\"\ndatasets = [\"dataset.toml\"]\napprovals = 1\n" +
           std::string(extra) +
           "[[approver]]\nrole = \"operator\"\norganisation = \"data-office\"\nkey = \"" +
           job.approver.Verifier().Print() + "\"\n" + std::string(tables);
  }
  std::string In(std::string_view name) const { return JoinPath(folder_, name); }
  void Write(std::string_view name, std::string_view text) const {
    REQUIRE(WriteFileDurably(In(name), AsBytes(text), 0644).ok());
  }
  Process Start(bool as_nobody = false) const {
    return {{Program("domicile-trainer"), "--config", In("trainer.toml")}, as_nobody};
  }
  TrainerClient Connect(std::string_view socket = "t.sock") const {
    StatusOr<TrainerClient> client =
        TrainerClient::Connect({In(socket), {}, std::chrono::seconds(20)});
    REQUIRE(client.ok());
    return *std::move(client);
  }
  // Approves the job for the trainer that serves.
  void Approve(std::string_view socket = "t.sock") {
    const TrainerClient client = Connect(socket);
    REQUIRE(!client.hello().datasets.empty());
    job.body.trainer = client.hello().trainer;
    job.body.dataset_commitment = client.hello().datasets[0].commitment;
  }
  TaskRequest Request(RoundNumber round, contracts::PhaseKind phase) const {
    const TaskMessage task = job.Task(round, phase);
    return {task.job,        task.round, task.phase,
            task.grant,      task.plan,  task.effective_policy,
            task.base_model, task.model, task.model_file};
  }

  ApprovedJob job;

 private:
  std::string folder_;
};

}  // namespace domicile::site_agent
