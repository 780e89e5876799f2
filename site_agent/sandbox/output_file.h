// Standard output and error into one file of limited size that only this user reads: what a trainer
// prints may be data, so it goes to no journal and no agent.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace domicile::site_agent {

// From now on descriptors 1 and 2 end in `path` (0600, begun anew; the file before it is kept as
// `path`.1), at most `max_bytes` of them; the rest is dropped. A child process copies, so that last
// words before a crash arrive and a flood cannot fill the disk; it is locked in, ends when this
// process does, and is reaped by init. Returns what standard output was, for the `ready:` line.
// Call before any thread exists. Errors: as ErrnoError, and those of Apply.
StatusOr<FileHandle> RedirectOutput(const std::string& path, std::uint64_t max_bytes);

}  // namespace domicile::site_agent
