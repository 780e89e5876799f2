// A program that the demo has started: its standard output read for one line, its log in a file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/file.h"
#include "base/status.h"

namespace domicile::cli {

// Killed with the demo itself; stopped and waited for when destroyed. Move-only.
class Child {
 public:
  // `log_file` takes standard error, and what follows the first lines of standard output.
  // Errors: kNotFound (no such program), kUnavailable.
  static StatusOr<Child> Start(const std::vector<std::string>& command,
                               const std::string& log_file);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  // Waits for the line `ready: ...` and returns what follows. Errors: kUnavailable, with the end of
  // the log, if the program ends or says nothing in time.
  StatusOr<std::string> WaitReady(std::chrono::milliseconds timeout);

  // What it prints until it ends. Errors: kUnavailable with the end of the log, for an exit code
  // other than 0.
  StatusOr<std::string> ReadToEnd();

  // SIGTERM, then waits. Returns the exit code, or 128 + signal.
  int Stop();
  // Waits for it to end by itself. Returns the same.
  int Wait();
  pid_t pid() const { return pid_; }

 private:
  Child(pid_t pid, FileHandle output, std::string log_file)
      : pid_(pid), output_(std::move(output)), log_file_(std::move(log_file)) {}

  pid_t pid_ = -1;
  FileHandle output_;
  std::string log_file_;
};

// Start and ReadToEnd.
StatusOr<std::string> RunToEnd(const std::vector<std::string>& command,
                               const std::string& log_file);

}  // namespace domicile::cli
