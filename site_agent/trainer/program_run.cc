#include "site_agent/trainer/internal/program_run.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace domicile::site_agent::internal {

namespace {

constexpr int kProgressDescriptor = 3;

struct RunPipe {
  FileHandle read;
  FileHandle write;
};

// The reading end does not wait: what a program writes must not hold the launcher up.
bool Make(RunPipe& pipe) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return false;
  }
  pipe.read = FileHandle(ends[0]);
  pipe.write = FileHandle(ends[1]);
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

// In the child, up to the program's first instruction. Its words go to the program's log.
[[noreturn]] void BeProgram(const ProgramSpec& spec, int executable, std::uint32_t dataset,
                            int output, int progress) {
  constexpr int kHigh = 10;
  const auto fail = [](const char* what) {
    std::fprintf(stderr, "could not start: %s: error %d\n", what, errno);
    _exit(127);
  };
  // Out of the way of the numbers they are to have.
  const int from_output = fcntl(output, F_DUPFD_CLOEXEC, kHigh);
  const int from_progress = fcntl(progress, F_DUPFD_CLOEXEC, kHigh);
  const int program = fcntl(executable, F_DUPFD_CLOEXEC, kHigh);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (from_output < 0 || from_progress < 0 || program < 0 || null < 0 ||
      dup2(from_output, STDOUT_FILENO) < 0 || dup2(from_output, STDERR_FILENO) < 0 ||
      dup2(null, STDIN_FILENO) < 0 || dup2(from_progress, kProgressDescriptor) < 0 ||
      close_range(kProgressDescriptor + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    fail("descriptors");
  }
  std::vector<PathRule> paths = spec.paths;
  const std::vector<PathRule>& data = spec.datasets[dataset];
  paths.insert(paths.end(), data.begin(), data.end());
  const Lockdown system = TrainerLockdown(paths);
  if (const Status narrowed = NarrowToRun(system.paths, spec.limits); !narrowed.ok()) {
    std::fprintf(stderr, "could not start: %s\n", std::string(Message(narrowed)).c_str());
    _exit(127);
  }
  umask(0077);
  if (chdir(spec.working_folder.c_str()) != 0) {
    fail("its folder");
  }
  std::vector<char*> arguments;
  std::vector<char*> environment;
  for (const std::string& part : spec.command) {
    arguments.push_back(const_cast<char*>(part.c_str()));
  }
  for (const std::string& part : spec.environment) {
    environment.push_back(const_cast<char*>(part.c_str()));
  }
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  syscall(SYS_execveat, program, "", arguments.data(), environment.data(), AT_EMPTY_PATH);
  fail("the executable");
  _exit(127);
}

// The log of a run: the first bytes of what the program says.
class RunLog {
 public:
  RunLog(const std::string& path, std::uint64_t bytes)
      : file_(open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)), left_(bytes) {}

  void Take(std::string_view bytes) {
    const std::size_t wanted = std::min<std::uint64_t>(left_, bytes.size());
    // A full disk loses output, never the run.
    if (wanted > 0 && write(file_.descriptor(), bytes.data(), wanted) > 0) {
      left_ -= wanted;
    }
  }

 private:
  FileHandle file_;
  std::uint64_t left_;
};

using SteadyTime = std::chrono::steady_clock::time_point;

class OneRun {
 public:
  OneRun(const ProgramSpec& spec, int orders, int reports)
      : spec_(spec), orders_(orders), reports_(reports), log_(spec.log_file, spec.log_bytes) {}

  ProgramOutcome Go(int executable, std::uint32_t dataset) {
    if (dataset >= spec_.datasets.size() || !Make(output_) || !Make(progress_)) {
      return {ProgramEnd::kCouldNotStart, 0};
    }
    const SteadyTime end =
        std::chrono::steady_clock::now() + std::chrono::seconds(spec_.wall_seconds);
    const pid_t child = fork();
    if (child == 0) {
      BeProgram(spec_, executable, dataset, output_.write.descriptor(),
                progress_.write.descriptor());
    }
    if (child < 0) {
      return {ProgramEnd::kCouldNotStart, 0};
    }
    output_.write = FileHandle();
    progress_.write = FileHandle();
    const FileHandle watch(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    const ProgramEnd killed =
        watch.IsOpen() ? Watch(watch.descriptor(), end) : ProgramEnd::kCouldNotStart;
    return Reap(child, killed);
  }

 private:
  // Until the program has ended (kNone), or must be killed.
  ProgramEnd Watch(int child, SteadyTime end) {
    while (true) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        return ProgramEnd::kWallTime;
      }
      std::array<pollfd, 4> waits = {{{child, POLLIN, 0},
                                      {orders_, POLLIN, 0},
                                      {output_.read.descriptor(), POLLIN, 0},
                                      {progress_.read.descriptor(), POLLIN, 0}}};
      constexpr std::int64_t kLongestWaitMs = 60'000;
      poll(waits.data(), waits.size(),
           static_cast<int>(std::min<std::int64_t>(left.count(), kLongestWaitMs)));
      if (waits[1].revents != 0) {
        Order order;
        if (!ReadRecord(orders_, &order, sizeof order)) {
          _exit(0);  // the trainer is gone, and with this process all that runs here
        }
        return ProgramEnd::kCancelled;
      }
      if (waits[2].revents != 0) {
        Drain(output_.read, [this](std::string_view bytes) { log_.Take(bytes); });
      }
      if (waits[3].revents != 0) {
        Drain(progress_.read, [this](std::string_view bytes) { TakeProgress(bytes); });
      }
      if (waits[0].revents != 0) {
        return ProgramEnd::kNone;
      }
    }
  }

  // One block: a flood leaves time for the other descriptors. Closed at its end.
  template <typename Take>
  void Drain(FileHandle& pipe, const Take& take) {
    const ssize_t got = read(pipe.descriptor(), block_.data(), block_.size());
    if (got > 0) {
      take(std::string_view(block_.data(), static_cast<std::size_t>(got)));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      pipe = FileHandle();
    }
  }

  // At most ten a second go to the trainer, which reads them when it can.
  void TakeProgress(std::string_view bytes) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (lines_.Take(bytes) && now >= next_progress_) {
      next_progress_ = now + std::chrono::milliseconds(100);
      const Report report = {ReportKind::kProgress, lines_.Percent(), 0};
      WriteRecord(reports_, &report, sizeof report);
    }
  }

  // Everything in the namespace but this process is of the run.
  ProgramOutcome Reap(pid_t child, ProgramEnd killed) {
    int status = 0;
    bool known = false;
    if (killed == ProgramEnd::kNone) {
      known = waitpid(child, &status, 0) == child;
    }
    kill(-1, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    // What is left would tell the next run, which may be on another dataset.
    if (!EmptyScratch()) {
      _exit(1);
    }
    // Nobody writes any more: the rest of the output.
    while (output_.read.IsOpen()) {
      Drain(output_.read, [this](std::string_view bytes) { log_.Take(bytes); });
    }
    if (killed != ProgramEnd::kNone) {
      return {killed, 0};
    }
    constexpr int kNeverStarted = 127;
    if (known && WIFEXITED(status)) {
      const int code = WEXITSTATUS(status);
      return {code == 0               ? ProgramEnd::kDone
              : code == kNeverStarted ? ProgramEnd::kCouldNotStart
                                      : ProgramEnd::kExitCode,
              static_cast<std::uint32_t>(code)};
    }
    return {ProgramEnd::kSignal,
            static_cast<std::uint32_t>(known && WIFSIGNALED(status) ? WTERMSIG(status) : 0)};
  }

  bool EmptyScratch() const {
    namespace fs = std::filesystem;
    if (spec_.scratch_bytes == 0) {
      return true;
    }
    std::error_code error;
    for (fs::directory_iterator entry(spec_.scratch_folder, error), end; !error && entry != end;
         entry.increment(error)) {
      fs::remove_all(entry->path(), error);
    }
    return !error && fs::is_empty(spec_.scratch_folder, error) && !error;
  }

  const ProgramSpec& spec_;
  int orders_;
  int reports_;
  RunLog log_;
  RunPipe output_;
  RunPipe progress_;
  ProgressLines lines_;
  SteadyTime next_progress_;
  std::array<char, std::size_t{1} << 14U> block_{};
};

}  // namespace

bool ReadRecord(int pipe, void* record, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = read(pipe, static_cast<char*>(record) + done, bytes - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool WriteRecord(int pipe, const void* record, std::size_t bytes) {
  ssize_t put = 0;
  do {
    put = write(pipe, record, bytes);  // shorter than PIPE_BUF: whole or not at all
  } while (put < 0 && errno == EINTR);
  return put == static_cast<ssize_t>(bytes);
}

bool ProgressLines::Take(std::string_view bytes) {
  const std::uint32_t before = percent_;
  for (const char byte : bytes) {
    if (byte == '\n') {
      EndLine();
    } else if (byte >= '0' && byte <= '9' && digits_ < 3) {
      value_ = value_ * 10 + static_cast<std::uint32_t>(byte - '0');
      ++digits_;
    } else {
      odd_ = true;
    }
  }
  return percent_ > before;
}

void ProgressLines::EndLine() {
  if (!odd_ && digits_ > 0 && value_ <= 100) {
    percent_ = std::max(percent_, value_);
  }
  value_ = 0;
  digits_ = 0;
  odd_ = false;
}

void ServeOrders(const ProgramSpec& spec, int executable, int orders, int reports) {
  while (true) {
    Order order;
    if (!ReadRecord(orders, &order, sizeof order)) {
      _exit(0);
    }
    if (order.kind != OrderKind::kRun) {
      continue;  // a cancel that crossed with the end
    }
    const ProgramOutcome outcome = OneRun(spec, orders, reports).Go(executable, order.dataset);
    const Report end = {ReportKind::kEnd, static_cast<std::uint32_t>(outcome.end), outcome.detail};
    if (!WriteRecord(reports, &end, sizeof end)) {
      _exit(0);
    }
  }
}

}  // namespace domicile::site_agent::internal
