// The further walls around a foreign program: its launcher's, and those of one run inside them
// (docs/formats/trainer-program.md). Each function binds the calling process for ever.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "site_agent/sandbox/lockdown.h"

namespace domicile::site_agent {

// What one run may use.
struct ProgramLimits {
  std::uint64_t memory_bytes = std::uint64_t{8} << 30U;  // addresses of one process
  std::uint64_t file_bytes = std::uint64_t{2} << 30U;    // of each file it writes
  std::uint32_t tasks = 512;                             // threads and processes
  bool processes = false;                                // whether it may start others
  std::uint32_t cpu_seconds = 0;                         // 0: no limit
  friend bool operator==(const ProgramLimits&, const ProgramLimits&) = default;
};

// The calling process moves to an empty network namespace and to a mount namespace in which a file
// system in memory, of at most so many bytes, lies over the folder `scratch` (0: none); and its
// next child begins a process namespace: that child's death kills all that runs in there. Errors:
// kFailedPrecondition.
Status EnterProgramNamespaces(const std::string& scratch, std::uint64_t scratch_bytes);

// Root has no limit on tasks: becomes `nobody`, keeping nothing but the right to open files of
// other users (Landlock bounds it). Nothing happens to another user. Errors: kFailedPrecondition.
Status LeaveRoot();

// Files and folders that any program of another party needs beside its own: what libraries look up
// about the machine, and the loader of programs.
std::vector<PathRule> ProgramSystemPaths();

// Narrows a process that Apply has locked to what one run may open and use; the next thing it does
// is to start the program. Errors: kFailedPrecondition, and those of opening a required path.
Status NarrowToRun(std::span<const PathRule> paths, const ProgramLimits& limits);

}  // namespace domicile::site_agent
