// The process that starts a foreign program, one run at a time, inside walls. It is forked before
// the trainer puts its own walls up and opens data, since afterwards nothing can be started; it
// takes two orders, run and cancel, and knows neither tasks nor the agent.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/file.h"
#include "base/status.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/sandbox/program_walls.h"
#include "site_agent/trainer/progress.h"

namespace domicile::site_agent {

// What is fixed for the launcher's life.
struct ProgramSpec {
  std::vector<std::string> command;      // its arguments; the first is its own name
  std::vector<std::string> environment;  // all of it: NAME=value
  std::string working_folder;
  std::string scratch_folder;  // for temporary files; emptied after each run
  std::uint64_t scratch_bytes = std::uint64_t{64} << 20U;  // 0: none
  std::vector<PathRule> paths;                             // of every run
  std::vector<std::vector<PathRule>> datasets;             // and those of a run on the n-th dataset
  ProgramLimits limits;
  std::uint32_t wall_seconds = 86400;
  std::string log_file;  // standard output and error of the last run, mode 0600
  std::uint64_t log_bytes = std::uint64_t{16} << 20U;
};

// Sent between processes: append, never renumber.
enum class ProgramEnd : std::uint8_t {
  kNone = 0,
  kDone = 1,           // exit code 0
  kExitCode = 2,       // another one
  kSignal = 3,         // killed, by itself or by a limit of its own
  kWallTime = 4,       // killed after wall_seconds
  kCancelled = 5,      // killed when asked
  kCouldNotStart = 6,  // the log file says why
};

struct ProgramOutcome {
  ProgramEnd end = ProgramEnd::kNone;
  std::uint32_t detail = 0;  // exit code or signal
};

// Ends with its owner: then all that runs is killed. One thread at a time.
class ProgramLauncher {
 public:
  // `executable` is what a run starts, opened for reading. To be called while this process has one
  // thread and no data. Errors: kFailedPrecondition (a wall this host cannot give), those of paths.
  static StatusOr<ProgramLauncher> Start(const ProgramSpec& spec, FileHandle executable);

  // Runs the program on the dataset of that number. When it returns, nothing the run started lives
  // on. `progress` takes rising whole per cent, on this thread. Errors: kUnavailable (the launcher
  // is gone).
  StatusOr<ProgramOutcome> Run(std::uint32_t dataset, const ProgressSink& progress,
                               std::stop_token stop);

  ProgramLauncher(ProgramLauncher&&) noexcept = default;
  ProgramLauncher& operator=(ProgramLauncher&&) noexcept = default;
  ~ProgramLauncher() = default;

 private:
  ProgramLauncher(FileHandle orders, FileHandle reports)
      : orders_(std::move(orders)), reports_(std::move(reports)) {}

  FileHandle orders_;
  FileHandle reports_;
};

}  // namespace domicile::site_agent
