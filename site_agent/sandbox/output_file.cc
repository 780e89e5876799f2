#include "site_agent/sandbox/output_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "site_agent/sandbox/lockdown.h"

namespace domicile::site_agent {

namespace {

StatusOr<FileHandle> BeginFile(const std::string& path) {
  if (rename(path.c_str(), (path + ".1").c_str()) != 0 && errno != ENOENT) {
    return ErrnoError(errno, "renaming `" + path + "`");
  }
  FileHandle file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600));
  if (!file.IsOpen()) {
    return ErrnoError(errno, "creating `" + path + "`");
  }
  return file;
}

// The copying child keeps the pipe's end as descriptor 0 and the file as 1, and nothing else:
// neither the caller's sockets nor the terminal. It reads until nobody can write any more.
[[noreturn]] void Copy(int from, int file, int locked, std::uint64_t max_bytes) {
  prctl(PR_SET_NAME, "trainer-output", 0, 0, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) {
    std::signal(signal, SIG_IGN);
  }
  const FileHandle null(open("/dev/null", O_RDWR));
  const int report = fcntl(locked, F_DUPFD, 10);
  if (report < 0 || !null.IsOpen() || dup2(from, 0) < 0 || dup2(file, 1) < 0 ||
      dup2(null.descriptor(), 2) < 0 || close_range(3, static_cast<unsigned>(report) - 1, 0) != 0 ||
      close_range(static_cast<unsigned>(report) + 1, ~0U, 0) != 0 || !Apply(Lockdown{}).ok()) {
    _exit(1);
  }
  const char done = 'y';
  if (write(report, &done, 1) != 1 || close(report) != 0) {
    _exit(1);
  }
  std::array<char, std::size_t{1} << 16U> block{};
  std::uint64_t left = max_bytes;
  while (true) {
    const ssize_t got = read(0, block.data(), block.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      _exit(0);
    }
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(left, static_cast<std::uint64_t>(got)));
    // A full disk loses output, never the trainer.
    if (wanted > 0 && write(1, block.data(), wanted) > 0) {
      left -= wanted;
    }
  }
}

}  // namespace

StatusOr<FileHandle> RedirectOutput(const std::string& path, std::uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const FileHandle file, BeginFile(path));
  std::array<int, 2> data = {-1, -1};
  std::array<int, 2> report = {-1, -1};
  if (pipe2(data.data(), O_CLOEXEC) != 0 || pipe2(report.data(), O_CLOEXEC) != 0) {
    return ErrnoError(errno, "making a pipe for `" + path + "`");
  }
  FileHandle read_end(data[0]);
  const FileHandle write_end(data[1]);
  FileHandle report_read(report[0]);
  FileHandle report_write(report[1]);
  std::fflush(nullptr);  // or the child would hold a second copy of what is buffered
  const pid_t child = fork();
  if (child < 0) {
    return ErrnoError(errno, "starting the process that copies into `" + path + "`");
  }
  if (child == 0) {
    Copy(read_end.descriptor(), file.descriptor(), report_write.descriptor(), max_bytes);
  }
  report_write = FileHandle();
  char answer = 0;
  if (read(report_read.descriptor(), &answer, 1) != 1 || answer != 'y') {
    return Error(StatusCode::kFailedPrecondition,
                 "the process that copies into `" + path + "` could not be locked in");
  }
  FileHandle before(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!before.IsOpen() || dup2(write_end.descriptor(), STDOUT_FILENO) < 0 ||
      dup2(write_end.descriptor(), STDERR_FILENO) < 0) {
    return ErrnoError(errno, "redirecting output to `" + path + "`");
  }
  return before;
}

}  // namespace domicile::site_agent
