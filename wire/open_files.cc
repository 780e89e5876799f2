#include "wire/open_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include <sys/resource.h>

#include "base/file.h"

namespace domicile::wire {
namespace {

constexpr std::uint64_t kReserve = 64;  // logs, databases, libraries, listening sockets

}  // namespace

StatusOr<OpenFileLimit> ReadOpenFileLimit() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return ErrnoError(errno, "the limit of open files");
  }
  std::error_code error;
  const std::filesystem::directory_iterator open_files("/proc/self/fd", error);
  if (error) {
    return ErrnoError(error.value(), "/proc/self/fd");
  }
  const auto in_use = std::distance(begin(open_files), end(open_files));
  return OpenFileLimit{limit.rlim_cur, limit.rlim_max, static_cast<std::uint64_t>(in_use)};
}

Status RequireOpenFiles(std::uint64_t connections) {
  ASSIGN_OR_RETURN(const OpenFileLimit limit, ReadOpenFileLimit());
  const std::uint64_t room = limit.in_use + kReserve;
  const bool absurd = connections > UINT64_MAX - room;
  const std::uint64_t needed = absurd ? UINT64_MAX : connections + room;
  if (needed <= limit.soft) {
    return OkStatus();
  }
  if (needed > limit.hard) {
    return Error(StatusCode::kResourceExhausted,
                 std::to_string(connections) + " connections need " + std::to_string(needed) +
                     " open files, and the limit of this process is " + std::to_string(limit.hard) +
                     "; raise it (`LimitNOFILE=` of the service, `ulimit -n` of a shell) or admit "
                     "fewer sites");
  }
  const struct rlimit raised = {limit.hard, limit.hard};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return ErrnoError(errno, "raising the limit of open files");
  }
  return OkStatus();
}

}  // namespace domicile::wire
