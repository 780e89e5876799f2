// What the daemons have in common: `--config` and `--version`, the log, signals, exit codes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace domicile {

// The signals a daemon answers. They are blocked in every thread and taken here, one at a time.
class Signals {
 public:
  enum class Asked : std::uint8_t { kNothing, kStop, kReload };

  // Blocks SIGTERM, SIGINT and SIGHUP in this thread and in all it will start: make it before the
  // first thread.
  Signals();

  // Waits at most `period`: kStop for SIGTERM and SIGINT, kReload for SIGHUP. Thread-safe; a
  // signal goes to one of those that wait.
  Asked Wait(std::chrono::milliseconds period) const;
};

// An option of one daemon: `--NAME WORD...`. Borrowed words; empty where it is not given.
struct DaemonOption {
  std::string name;
  std::string description;
  std::vector<std::string>* words = nullptr;
};

struct Daemon {
  std::string program;      // `domicile-agent`
  std::string log;          // what its log lines say: `agent`
  std::string description;  // of `--help`, without the example
  std::string version;
  std::vector<DaemonOption> options = {};
};

using RunDaemonBody = std::function<Status(const std::string& config_path, const Signals& signals)>;

// The whole of a daemon's main: files it makes are nobody else's, errors go to standard error.
// Returns the exit code: 0 done, 2 wrong use or bad input (also kUnauthenticated: an identity that
// is not accepted), 3 could not do it.
int RunDaemon(const Daemon& daemon, int argc, char** argv, const RunDaemonBody& body);

}  // namespace domicile
