#include "cli/demo/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestLog = std::uint64_t{64} << 20U;
constexpr std::size_t kShownOfLog = 2000;

// The last lines of a log: what a person needs when a program has failed.
std::string EndOf(const std::string& log_file) {
  const StatusOr<std::string> text = ReadFile(log_file, kLargestLog);
  if (!text.ok()) {
    return {};
  }
  return "\n" + text->substr(text->size() - std::min(text->size(), kShownOfLog));
}

// In the new process: nothing but system calls until exec.
[[noreturn]] void Exec(const std::vector<char*>& argv, int output, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(127);  // the demo died before the line above
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

StatusOr<Child> Child::Start(const std::vector<std::string>& command, const std::string& log_file) {
  const FileHandle log(open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  std::array<int, 2> ends{};
  if (!log.IsOpen() || pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ErrnoError(errno, "starting `" + command.front() + "`");
  }
  FileHandle output(ends[0]);
  const FileHandle input(ends[1]);  // closed here when the program has it
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));  // exec does not write to them
  }
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return ErrnoError(errno, "starting `" + command.front() + "`");
  }
  if (pid == 0) {
    Exec(argv, input.descriptor(), log.descriptor(), parent);
  }
  return Child(pid, std::move(output), log_file);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      log_file_(std::move(other.log_file_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    Stop();
    pid_ = std::exchange(other.pid_, -1);
    output_ = std::move(other.output_);
    log_file_ = std::move(other.log_file_);
  }
  return *this;
}

Child::~Child() { Stop(); }

StatusOr<std::string> Child::WaitReady(std::chrono::milliseconds timeout) {
  static constexpr std::string_view kReady = "ready: ";
  const auto until = std::chrono::steady_clock::now() + timeout;
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd wait{.fd = output_.descriptor(), .events = POLLIN, .revents = 0};
    const int polled = poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    std::array<char, 512> block{};
    const ssize_t got = polled > 0 ? read(output_.descriptor(), block.data(), block.size()) : 0;
    if (got <= 0) {
      return Error(StatusCode::kUnavailable,
                   "a program of the demo did not become ready; its log `" + log_file_ +
                       "` ends:" + EndOf(log_file_));
    }
    text.append(block.data(), static_cast<std::size_t>(got));
    const std::size_t at = text.find(kReady);
    const std::size_t end = at == std::string::npos ? at : text.find('\n', at);
    if (end != std::string::npos) {
      return text.substr(at + kReady.size(), end - at - kReady.size());
    }
  }
}

int Child::Stop() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
  }
  return Wait();
}

int Child::Wait() {
  if (pid_ <= 0) {
    return 0;
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

StatusOr<std::string> Child::ReadToEnd() {
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t got = 1; got > 0;) {
    got = read(output_.descriptor(), block.data(), block.size());
    if (got > 0) {
      text.append(block.data(), static_cast<std::size_t>(got));
    }
  }
  if (Wait() != 0) {
    return Error(StatusCode::kUnavailable, "a program of the demo failed; its log `" + log_file_ +
                                               "` ends:" + EndOf(log_file_));
  }
  return text;
}

StatusOr<std::string> RunToEnd(const std::vector<std::string>& command,
                               const std::string& log_file) {
  ASSIGN_OR_RETURN(Child child, Child::Start(command, log_file));
  return child.ReadToEnd();
}

}  // namespace domicile::cli
