// The system calls that go around the other walls, refused with EPERM. Everything else is allowed:
// the walls against files and networks are Landlock, the namespace and the refusal of every socket.
#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>

#include "site_agent/sandbox/internal/walls.h"

namespace domicile::site_agent::internal {

namespace {

// Other processes' memory and descriptors; mounts and namespaces; kernel interfaces with a history
// of escapes that nothing here uses; files by handle, which name no path.
constexpr std::array<const char*, 41> kEveryProcess = {"ptrace",
                                                       "process_vm_readv",
                                                       "process_vm_writev",
                                                       "process_madvise",
                                                       "pidfd_getfd",
                                                       "kcmp",
                                                       "mount",
                                                       "umount2",
                                                       "move_mount",
                                                       "open_tree",
                                                       "fsopen",
                                                       "fsconfig",
                                                       "fsmount",
                                                       "fspick",
                                                       "mount_setattr",
                                                       "pivot_root",
                                                       "chroot",
                                                       "unshare",
                                                       "setns",
                                                       "bpf",
                                                       "io_uring_setup",
                                                       "io_uring_enter",
                                                       "io_uring_register",
                                                       "userfaultfd",
                                                       "keyctl",
                                                       "add_key",
                                                       "request_key",
                                                       "perf_event_open",
                                                       "kexec_load",
                                                       "kexec_file_load",
                                                       "init_module",
                                                       "finit_module",
                                                       "delete_module",
                                                       "iopl",
                                                       "ioperm",
                                                       "open_by_handle_at",
                                                       "fanotify_init",
                                                       "acct",
                                                       "swapon",
                                                       "swapoff",
                                                       "reboot"};

// Starting programs: all that runs here is running.
constexpr std::array<const char*, 2> kProgramStart = {"execve", "execveat"};

constexpr std::array<const char*, 7> kNewSockets = {"socket", "socketpair", "connect", "bind",
                                                    "listen", "recvmsg",    "recvmmsg"};
// Messages that can carry a descriptor: an open data file handed to the agent would pass Landlock,
// which looks at opening only.
constexpr std::array<const char*, 2> kDescriptorPassing = {"sendmsg", "sendmmsg"};

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

Status FilterError(int result, std::string_view what) {
  return Error(StatusCode::kFailedPrecondition,
               "this host cannot filter system calls (" + std::string(what) + ", error " +
                   std::to_string(-result) + "): a kernel with seccomp filters is needed");
}

Status Refuse(scmp_filter_ctx filter, const char* name) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) {
    return FilterError(-ENOSYS, std::string("resolving ") + name);
  }
  const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
  return result == 0 ? OkStatus() : FilterError(result, name);
}

// Threads stay possible, new namespaces do not. clone3 hides its flags behind a pointer: ENOSYS
// makes the C library fall back to clone, whose flags the filter sees.
Status RefuseNamespaces(scmp_filter_ctx filter) {
  // Without CLONE_NEWTIME: its bit lies in clone's exit signal; only unshare and clone3 can set it.
  constexpr std::array<std::uint64_t, 7> kFlags = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                                   CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                                   CLONE_NEWNET};
  for (const std::uint64_t flag : kFlags) {
    const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                        SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
    if (result != 0) {
      return FilterError(result, "clone");
    }
  }
  const int result =
      seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), seccomp_syscall_resolve_name("clone3"), 0);
  return result == 0 ? OkStatus() : FilterError(result, "clone3");
}

Status RefuseSockets(scmp_filter_ctx filter) {
  for (const char* name : kNewSockets) {
    RETURN_IF_ERROR(Refuse(filter, name));
  }
  for (const char* name : kDescriptorPassing) {
    RETURN_IF_ERROR(Refuse(filter, name));
  }
  // send() is sendto() without an address; with one it could reach a socket that is not connected.
  const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(sendto), 1,
                                      SCMP_A4(SCMP_CMP_NE, 0, 0));
  return result == 0 ? OkStatus() : FilterError(result, "sendto");
}

// Sockets of a namespace that leads nowhere, and netlink to ask it for its interfaces. The rules
// are about what is not allowed: one rule cannot say that an argument is none of three.
Status RefuseOtherFamilies(scmp_filter_ctx filter) {
  constexpr std::uint64_t kLastFamily = AF_MAX;
  for (std::uint64_t family = 0; family <= kLastFamily; ++family) {
    if (family == AF_INET || family == AF_INET6 || family == AF_NETLINK) {
      continue;
    }
    const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                        SCMP_A0(SCMP_CMP_EQ, family, 0));
    if (result != 0) {
      return FilterError(result, "socket");
    }
  }
  const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                      SCMP_A0(SCMP_CMP_GT, kLastFamily, 0));
  return result == 0 ? Refuse(filter, "socketpair") : FilterError(result, "socket");
}

}  // namespace

Status FilterCalls(CallFilter filter) {
  const Filter context(seccomp_init(SCMP_ACT_ALLOW));
  if (context == nullptr) {
    return FilterError(-ENOMEM, "seccomp_init");
  }
  // Calls by the numbers of another architecture would pass the list unseen.
  int result = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (result != 0) {
    return FilterError(result, "architecture");
  }
  for (const char* name : kEveryProcess) {
    RETURN_IF_ERROR(Refuse(context.get(), name));
  }
  RETURN_IF_ERROR(RefuseNamespaces(context.get()));
  if (filter != CallFilter::kLauncher) {
    for (const char* name : kProgramStart) {
      RETURN_IF_ERROR(Refuse(context.get(), name));
    }
  }
  if (filter == CallFilter::kLoopback) {
    RETURN_IF_ERROR(RefuseOtherFamilies(context.get()));
    for (const char* name : kDescriptorPassing) {
      RETURN_IF_ERROR(Refuse(context.get(), name));
    }
  } else if (filter != CallFilter::kAgent) {
    RETURN_IF_ERROR(RefuseSockets(context.get()));
  }
  result = seccomp_load(context.get());
  return result == 0 ? OkStatus() : FilterError(result, "seccomp_load");
}

// Another filter on top of the one that stands: of two, the stricter answer counts.
Status RefuseProcesses() {
  const Filter context(seccomp_init(SCMP_ACT_ALLOW));
  if (context == nullptr) {
    return FilterError(-ENOMEM, "seccomp_init");
  }
  for (const char* name : {"fork", "vfork"}) {
    RETURN_IF_ERROR(Refuse(context.get(), name));
  }
  // A thread is what shares its thread group; clone3 is refused by the filter below this one.
  const int result = seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  if (result != 0) {
    return FilterError(result, "clone");
  }
  const int loaded = seccomp_load(context.get());
  return loaded == 0 ? OkStatus() : FilterError(loaded, "seccomp_load");
}

}  // namespace domicile::site_agent::internal
