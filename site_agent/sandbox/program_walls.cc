#include "site_agent/sandbox/program_walls.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "site_agent/sandbox/internal/walls.h"

namespace domicile::site_agent {

namespace {

constexpr unsigned kNobody = 65534;
constexpr std::uint32_t kOverrideBit = 1U << CAP_DAC_OVERRIDE;

Status Unable(std::string_view what, int error) {
  return Error(StatusCode::kFailedPrecondition,
               "this host cannot " + std::string(what) + ": " +
                   std::string(Message(ErrnoError(error, "the kernel said"))));
}

using CapabilitySets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

bool ReadCapabilities(CapabilitySets& sets) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  return syscall(SYS_capget, &header, sets.data()) == 0;
}

bool WriteCapabilities(const CapabilitySets& sets) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  return syscall(SYS_capset, &header, sets.data()) == 0;
}

// What the launcher may open, the program may: a program start would drop it.
Status KeepOverrideAcrossStart() {
  CapabilitySets sets{};
  if (!ReadCapabilities(sets)) {
    return Unable("read capabilities", errno);
  }
  if ((sets[0].permitted & kOverrideBit) == 0) {
    return OkStatus();
  }
  sets[0].inheritable |= kOverrideBit;
  if (!WriteCapabilities(sets) ||
      prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) != 0) {
    return Unable("hand on the right to open files", errno);
  }
  return OkStatus();
}

struct Limit {
  __rlimit_resource_t resource;
  rlim_t value;
};

Status SetLimits(const ProgramLimits& limits) {
  constexpr rlim_t kOpenFiles = 1024;
  const std::array<Limit, 6> all = {{
      {RLIMIT_AS, limits.memory_bytes},
      {RLIMIT_FSIZE, limits.file_bytes},
      {RLIMIT_NPROC, limits.tasks},
      {RLIMIT_NOFILE, kOpenFiles},
      {RLIMIT_MSGQUEUE, 0},
      {RLIMIT_CPU, limits.cpu_seconds == 0 ? RLIM_INFINITY : limits.cpu_seconds},
  }};
  for (const Limit& limit : all) {
    rlimit now{};
    if (getrlimit(limit.resource, &now) != 0) {
      return Unable("read a limit", errno);
    }
    const rlim_t value = std::min(limit.value, now.rlim_max);
    const rlimit wanted = {value, value};
    if (setrlimit(limit.resource, &wanted) != 0) {
      return Unable("set a limit", errno);
    }
  }
  return OkStatus();
}

}  // namespace

Status EnterProgramNamespaces(const std::string& scratch, std::uint64_t scratch_bytes) {
  RETURN_IF_ERROR(internal::EnterNetworkNamespace());
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Unable(
        "give a program its own process and mount namespaces, by which all it started can be "
        "ended; allow user namespaces (sysctl `user.max_user_namespaces`, "
        "`kernel.unprivileged_userns_clone`)",
        errno);
  }
  if (scratch_bytes == 0) {
    return OkStatus();
  }
  const std::string options = "mode=0700,nr_inodes=4096,size=" + std::to_string(scratch_bytes);
  if (mount("domicile-scratch", scratch.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
            options.c_str()) != 0) {
    return Unable("give a program temporary files; set `program.limits.scratch_bytes` to 0", errno);
  }
  return OkStatus();
}

Status LeaveRoot() {
  if (geteuid() != 0 && getuid() != 0) {
    return OkStatus();
  }
  CapabilitySets sets{};
  if (!ReadCapabilities(sets)) {
    return Unable("read capabilities", errno);
  }
  const std::uint32_t kept = sets[0].permitted & kOverrideBit;
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setgroups(0, nullptr) != 0 ||
      setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) {
    return Unable(
        "run a program as another user than root, who has no limit on processes; start the "
        "trainer as a user of its own",
        errno);
  }
  sets = {};
  sets[0].permitted = kept;
  sets[0].effective = kept;
  // A change of user makes /proc/self root's, where the walls against core files are written.
  if (!WriteCapabilities(sets) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) {
    return Unable("give up capabilities", errno);
  }
  return OkStatus();
}

std::vector<PathRule> ProgramSystemPaths() {
  std::vector<PathRule> rules;
  for (const char* path : {"/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
                           "/etc/localtime", "/usr/share/locale", "/dev/zero"}) {
    rules.push_back({path, PathAccess::kRead, false});
  }
  for (const char* loader : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}) {
    rules.push_back({loader, PathAccess::kExecute, false});
  }
  return rules;
}

Status NarrowToRun(std::span<const PathRule> paths, const ProgramLimits& limits) {
  RETURN_IF_ERROR(SetLimits(limits));
  RETURN_IF_ERROR(KeepOverrideAcrossStart());
  RETURN_IF_ERROR(internal::RestrictFiles(paths).status());
  return limits.processes ? OkStatus() : internal::RefuseProcesses();
}

}  // namespace domicile::site_agent
