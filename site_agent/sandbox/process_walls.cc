// Namespace, core files, privileges, capabilities: walls made of ordinary system calls.
#include <array>
#include <cerrno>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "site_agent/sandbox/internal/walls.h"

namespace domicile::site_agent::internal {

namespace {

Status Unable(std::string_view what, int error) {
  return Error(StatusCode::kFailedPrecondition,
               "this host cannot " + std::string(what) + ": " +
                   std::string(Message(ErrnoError(error, "the kernel said"))));
}

// Files under /proc take a value in one write.
bool WriteOnce(const char* path, std::string_view text) {
  const FileHandle file(open(path, O_WRONLY | O_CLOEXEC));
  return file.IsOpen() &&
         write(file.descriptor(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool EnterUserNamespace(uid_t user, gid_t group) {
  const std::string user_map = std::to_string(user) + " " + std::to_string(user) + " 1";
  const std::string group_map = std::to_string(group) + " " + std::to_string(group) + " 1";
  return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && WriteOnce("/proc/self/setgroups", "deny") &&
         WriteOnce("/proc/self/uid_map", user_map) && WriteOnce("/proc/self/gid_map", group_map);
}

}  // namespace

bool OnlyLoopback() {
  // Two lines of heading, then `  name: counters`; no socket needed.
  std::ifstream devices("/proc/self/net/dev");
  std::string line;
  std::size_t lines = 0;
  while (std::getline(devices, line)) {
    ++lines;
    if (lines > 2 && StripWhitespace(std::string_view(line).substr(0, line.find(':'))) != "lo") {
      return false;
    }
  }
  return lines >= 2;
}

Status EnterNetworkNamespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNET) != 0 && !EnterUserNamespace(user, group) && !OnlyLoopback()) {
    return Unable(
        "separate the trainer from the network; allow user namespaces (sysctl "
        "`user.max_user_namespaces`, `kernel.unprivileged_userns_clone`), or start the trainer in "
        "a network namespace of its own (systemd: `PrivateNetwork=yes`)",
        errno);
  }
  if (!OnlyLoopback()) {
    return Error(
        StatusCode::kFailedPrecondition,
        "this host cannot separate the trainer from the network: its new network namespace "
        "is not empty");
  }
  return OkStatus();
}

Status RaiseLoopback() {
  const FileHandle any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  bool raised = any.IsOpen() && ioctl(any.descriptor(), SIOCGIFFLAGS, &request) == 0;
  if (raised && (request.ifr_flags & IFF_UP) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    raised = ioctl(any.descriptor(), SIOCSIFFLAGS, &request) == 0;
  }
  return raised ? OkStatus() : Unable("take up the loopback of the trainer's own network", errno);
}

Status ForbidCoreFiles() {
  // 1 and not 0: a collector behind a pipe (core_pattern `|...`) is started at every limit but 1
  // (Linux, fs/coredump.c).
  constexpr rlimit kOne = {1, 1};
  if (setrlimit(RLIMIT_CORE, &kOne) != 0) {
    rlimit now{};
    // A hard limit of 0 set by the service manager cannot be raised; ForbidDumps covers the pipe.
    if (getrlimit(RLIMIT_CORE, &now) != 0 || now.rlim_max != 0) {
      return Unable("forbid core files", errno);
    }
  }
  // Should an image be made after all, there is no mapping in it.
  if (!WriteOnce("/proc/self/coredump_filter", "0")) {
    return Unable("forbid core files (`/proc/self/coredump_filter`)", errno);
  }
  return OkStatus();
}

Status ForbidDumps() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return Unable("forbid core files (PR_SET_DUMPABLE)", errno);
  }
  return OkStatus();
}

Status ForbidNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Unable("forbid new privileges", errno);
  }
  return OkStatus();
}

Status DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) {
    return Unable("read capabilities", errno);
  }
  constexpr std::uint32_t kKept = 1U << CAP_DAC_OVERRIDE;
  sets[0].permitted &= kKept;
  sets[0].effective = sets[0].permitted;
  sets[0].inheritable = 0;
  sets[1] = {};
  if (syscall(SYS_capset, &header, sets.data()) != 0) {
    return Unable("give up capabilities", errno);
  }
  return OkStatus();
}

}  // namespace domicile::site_agent::internal
