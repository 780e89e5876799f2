#include "site_agent/trainer/program_launcher.h"

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

#include "base/text.h"
#include "site_agent/trainer/internal/program_run.h"

namespace domicile::site_agent {

namespace {

using internal::Order;
using internal::OrderKind;
using internal::Report;
using internal::ReportKind;

struct Pipe {
  FileHandle read;
  FileHandle write;
};

StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ErrnoError(errno, "making a pipe to the program's launcher");
  }
  return Pipe{FileHandle(ends[0]), FileHandle(ends[1])};
}

// All that any run may open; a run itself is narrowed to its own dataset.
Lockdown LauncherLockdown(const ProgramSpec& spec) {
  Lockdown lockdown = TrainerLockdown(spec.paths);
  for (const std::vector<PathRule>& dataset : spec.datasets) {
    lockdown.paths.insert(lockdown.paths.end(), dataset.begin(), dataset.end());
  }
  // A run has another number in /proc than the launcher. Its own layer shuts the rest of it.
  lockdown.paths.push_back({"/proc", PathAccess::kRead, true});
  lockdown.paths.push_back({spec.log_file, PathAccess::kWrite, true});
  lockdown.network = NetworkWall::kNone;  // it is in one
  lockdown.calls = CallFilter::kLauncher;
  return lockdown;
}

// Neither the trainer's sockets nor its terminal.
bool KeepOnly(std::array<int, 3> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    const auto number = static_cast<unsigned>(descriptor);
    if (number > from && close_range(from, number - 1, 0) != 0) {
      return false;
    }
    from = std::max(from, number + 1);
  }
  const FileHandle null(open("/dev/null", O_RDWR));
  return null.IsOpen() && dup2(null.descriptor(), STDIN_FILENO) == STDIN_FILENO &&
         dup2(null.descriptor(), STDOUT_FILENO) == STDOUT_FILENO &&
         dup2(null.descriptor(), STDERR_FILENO) == STDERR_FILENO && close_range(from, ~0U, 0) == 0;
}

// What keeps the launcher from starting goes to the trainer as text, then the pipe ends.
[[noreturn]] void Say(int reports, const Status& status) {
  const std::string text(Message(status));
  (void)!write(reports, text.data(), text.size());
  _exit(1);
}

// The first process of the namespace.
[[noreturn]] void BeLauncher(const ProgramSpec& spec, int executable, int orders, int reports) {
  prctl(PR_SET_NAME, "trainer-program", 0, 0, 0);
  if (getpid() != 1) {  // INVARIANT: what it kills after a run is all of its own namespace
    Say(reports, Error(StatusCode::kFailedPrecondition, "no process namespace was made"));
  }
  Status locked = LeaveRoot();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // after a change of user, which clears it
  if (locked.ok()) {
    locked = Apply(LauncherLockdown(spec)).status();
  }
  if (!locked.ok()) {
    Say(reports, locked);
  }
  const Report ready = {ReportKind::kReady, 0, 0};
  if (!internal::WriteRecord(reports, &ready, sizeof ready)) {
    _exit(1);
  }
  internal::ServeOrders(spec, executable, orders, reports);
}

// Between trainer and launcher: a process namespace begins with a child.
[[noreturn]] void BeMiddle(const ProgramSpec& spec, int executable, int orders, int reports) {
  prctl(PR_SET_NAME, "trainer-program", 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    std::signal(signal, SIG_IGN);  // the trainer ends the launcher by the end of its pipe
  }
  if (!KeepOnly({executable, orders, reports})) {
    Say(reports, ErrnoError(errno, "closing what the program must not have"));
  }
  if (const Status entered = EnterProgramNamespaces(spec.scratch_folder, spec.scratch_bytes);
      !entered.ok()) {
    Say(reports, entered);
  }
  const pid_t launcher = fork();
  if (launcher == 0) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      std::signal(signal, SIG_DFL);
    }
    BeLauncher(spec, executable, orders, reports);
  }
  close(executable);
  close(orders);
  close(reports);
  Lockdown all_shut;
  all_shut.network = NetworkWall::kNone;
  if (launcher < 0 || !Apply(all_shut).ok()) {
    _exit(1);
  }
  while (waitpid(launcher, nullptr, 0) < 0 && errno == EINTR) {
  }
  _exit(0);
}

Status Gone() {
  return Error(StatusCode::kUnavailable,
               "the process that starts programs is gone; start the trainer anew");
}

// The first report, or why there is none: the launcher writes a record or a text, then nothing.
Status AwaitReady(int reports) {
  std::string text(4096, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(reports, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    have += static_cast<std::size_t>(got);
    if (have == sizeof(Report) && text[0] == static_cast<char>(ReportKind::kReady)) {
      return OkStatus();
    }
  }
  text.resize(have);
  return Error(StatusCode::kFailedPrecondition,
               "`program`: " + (text.empty() ? "its launcher ended at once" : text));
}

}  // namespace

StatusOr<ProgramLauncher> ProgramLauncher::Start(const ProgramSpec& spec, FileHandle executable) {
  ASSIGN_OR_RETURN(Pipe orders, MakePipe());
  ASSIGN_OR_RETURN(Pipe reports, MakePipe());
  const FileHandle log(
      open(spec.log_file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!log.IsOpen()) {
    return ErrnoError(errno, "creating `" + spec.log_file + "`");
  }
  const pid_t middle = fork();
  if (middle < 0) {
    return ErrnoError(errno, "starting the process that starts programs");
  }
  if (middle == 0) {
    orders.write = FileHandle();
    reports.read = FileHandle();
    BeMiddle(spec, executable.descriptor(), orders.read.descriptor(), reports.write.descriptor());
  }
  reports.write = FileHandle();
  std::signal(SIGPIPE, SIG_IGN);  // a launcher that is gone is an error, not this process's end
  RETURN_IF_ERROR(AwaitReady(reports.read.descriptor()));
  return ProgramLauncher(std::move(orders.write), std::move(reports.read));
}

StatusOr<ProgramOutcome> ProgramLauncher::Run(std::uint32_t dataset, const ProgressSink& progress,
                                              std::stop_token stop) {
  constexpr int kLookAtStopMs = 50;
  const Order run = {OrderKind::kRun, dataset};
  if (!internal::WriteRecord(orders_.descriptor(), &run, sizeof run)) {
    return Gone();
  }
  bool cancelled = false;
  while (true) {
    if (stop.stop_requested() && !std::exchange(cancelled, true)) {
      const Order cancel = {OrderKind::kCancel, 0};
      if (!internal::WriteRecord(orders_.descriptor(), &cancel, sizeof cancel)) {
        return Gone();
      }
    }
    pollfd wait = {reports_.descriptor(), POLLIN, 0};
    const int ready = poll(&wait, 1, kLookAtStopMs);
    if (ready <= 0) {
      continue;
    }
    Report report;
    if (!internal::ReadRecord(reports_.descriptor(), &report, sizeof report)) {
      return Gone();
    }
    if (report.kind == ReportKind::kProgress) {
      progress({report.value});
    } else if (report.kind == ReportKind::kEnd) {
      return ProgramOutcome{static_cast<ProgramEnd>(report.value), report.detail};
    }
  }
}

}  // namespace domicile::site_agent
