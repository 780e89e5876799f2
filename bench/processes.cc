#include "bench/processes.h"

#include <cstdint>
#include <sstream>
#include <string>

#include <unistd.h>

#include "base/file.h"

namespace domicile::bench {

namespace {

constexpr std::uint64_t kLargest = 64U << 10U;
constexpr double kKibInMib = 1024;

std::string ProcFile(pid_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

}  // namespace

StatusOr<double> CpuSecondsOf(pid_t pid) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(ProcFile(pid, "stat"), kLargest));
  // The second field, the program's name in parentheses, may hold anything; utime and stime are
  // fields 14 and 15 (proc(5)).
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return Error(StatusCode::kDataLoss, "`" + ProcFile(pid, "stat") + "` is not in its form");
  }
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) {
    fields >> skipped;
  }
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  if (!(fields >> user >> system)) {
    return Error(StatusCode::kDataLoss, "`" + ProcFile(pid, "stat") + "` is not in its form");
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

StatusOr<double> PeakMibOf(pid_t pid) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(ProcFile(pid, "status"), kLargest));
  std::istringstream lines(text);
  std::string word;
  while (lines >> word) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && lines >> kib) {
      return static_cast<double>(kib) / kKibInMib;
    }
  }
  return Error(StatusCode::kDataLoss, "`" + ProcFile(pid, "status") + "` has no VmHWM");
}

}  // namespace domicile::bench
