#include "site_agent/sandbox/canary.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace domicile::site_agent {

namespace {

void Note(CanaryReport& report, std::string name, bool open) {
  if (open) {
    report.open.push_back(name);
  }
  report.tried.push_back(std::move(name));
}

// A call with arguments that make it fail harmlessly is open if the kernel looked at them: then the
// error is another than EPERM.
bool Reached(long result) { return result != -1 || errno != EPERM; }

// A connection to an address that no network has (RFC 5737). Without a route it fails at once.
bool HasRoute() {
  const FileHandle made(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in nowhere{};
  nowhere.sin_family = AF_INET;
  nowhere.sin_port = htons(9);
  nowhere.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1
  return made.IsOpen() && (connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&nowhere),
                                   sizeof(nowhere)) == 0 ||
                           errno != ENETUNREACH);
}

void TrySockets(CanaryReport& report, bool has_loopback) {
  struct Family {
    std::string_view name;
    int family;
    int type;
    int protocol = 0;
  };
  constexpr std::array<Family, 12> kFamilies = {{
      {"socket_unix", AF_UNIX, SOCK_STREAM},
      {"socket_inet_tcp", AF_INET, SOCK_STREAM},
      {"socket_inet_udp", AF_INET, SOCK_DGRAM},
      {"socket_inet_raw", AF_INET, SOCK_RAW, 1},
      {"socket_inet6_tcp", AF_INET6, SOCK_STREAM},
      {"socket_inet6_udp", AF_INET6, SOCK_DGRAM},
      {"socket_netlink", AF_NETLINK, SOCK_RAW},
      {"socket_packet", AF_PACKET, SOCK_RAW},
      {"socket_vsock", AF_VSOCK, SOCK_STREAM},
      {"socket_alg", AF_ALG, SOCK_SEQPACKET},
      {"socket_bluetooth", AF_BLUETOOTH, SOCK_RAW},
      {"socket_xdp", 44, SOCK_RAW},
  }};
  for (const Family& f : kFamilies) {
    const bool leads_nowhere =
        f.family == AF_NETLINK ||
        ((f.family == AF_INET || f.family == AF_INET6) && f.type != SOCK_RAW);
    if (has_loopback && leads_nowhere) {
      continue;
    }
    const FileHandle made(socket(f.family, f.type | SOCK_CLOEXEC, f.protocol));
    Note(report, std::string(f.name), made.IsOpen());
  }
  std::array<int, 2> pair = {-1, -1};
  const bool paired = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0;
  const FileHandle first(pair[0]);
  const FileHandle second(pair[1]);
  Note(report, "socketpair", paired);
  if (has_loopback) {
    Note(report, "route", HasRoute());
  } else {
    Note(report, "connect", Reached(connect(-1, nullptr, 0)));
  }
  Note(report, "sendmsg", Reached(syscall(SYS_sendmsg, -1, nullptr, 0)));
}

void TryCalls(CanaryReport& report) {
  Note(report, "ptrace", Reached(ptrace(PTRACE_PEEKDATA, getpid(), nullptr, nullptr)));
  Note(report, "process_vm_readv",
       Reached(syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0)));
  Note(report, "pidfd_getfd", Reached(syscall(438, -1, -1, 0)));
  Note(report, "mount", Reached(mount(nullptr, nullptr, nullptr, 0, nullptr)));
  Note(report, "unshare", Reached(unshare(0)));
  Note(report, "setns", Reached(setns(-1, 0)));
  Note(report, "bpf", Reached(syscall(SYS_bpf, -1, nullptr, 0)));
  Note(report, "io_uring", Reached(syscall(425, 0, nullptr)));
  Note(report, "userfaultfd", Reached(syscall(SYS_userfaultfd, ~0)));
  Note(report, "keyctl", Reached(syscall(SYS_keyctl, ~0, 0, 0, 0, 0)));
  Note(report, "perf_event_open", Reached(syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0)));
  Note(report, "kexec", Reached(syscall(SYS_kexec_load, 0, 0, nullptr, ~0UL)));
  Note(report, "open_by_handle", Reached(syscall(SYS_open_by_handle_at, -1, nullptr, 0)));
  Note(report, "exec", Reached(syscall(SYS_execve, "/", nullptr, nullptr)));
}

void TryFiles(CanaryReport& report, std::span<const std::string> shut_paths) {
  Note(report, "list_root", FileHandle(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)).IsOpen());
  Note(report, "other_process", FileHandle(open("/proc/1/environ", O_RDONLY | O_CLOEXEC)).IsOpen());
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFolders = {
      {{"write_tmp", "/tmp"}, {"write_var_tmp", "/var/tmp"}, {"write_shm", "/dev/shm"}}};
  for (const auto& [name, folder] : kFolders) {
    const std::string path = JoinPath(folder, ".domicile-canary-" + std::to_string(getpid()));
    const FileHandle made(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (made.IsOpen()) {
      unlink(path.c_str());
    }
    Note(report, std::string(name), made.IsOpen());
  }
  for (const std::string& path : shut_paths) {
    Note(report, "shut_path", FileHandle(open(path.c_str(), O_RDONLY | O_CLOEXEC)).IsOpen());
  }
}

CanaryReport Trainer(std::span<const std::string> shut_paths, bool has_loopback) {
  CanaryReport report;
  TrySockets(report, has_loopback);
  TryCalls(report);
  TryFiles(report, shut_paths);
  return report;
}

}  // namespace

CanaryReport TrainerCanary(std::span<const std::string> shut_paths) {
  return Trainer(shut_paths, false);
}

CanaryReport TrainerLoopbackCanary(std::span<const std::string> shut_paths) {
  return Trainer(shut_paths, true);
}

CanaryReport AgentCanary(std::span<const std::string> shut_paths) {
  CanaryReport report;
  TryCalls(report);
  TryFiles(report, shut_paths);
  return report;
}

Status RequireShut(const CanaryReport& report) {
  if (report.open.empty()) {
    return OkStatus();
  }
  return Error(StatusCode::kFailedPrecondition,
               "this host cannot hold the sandbox: after locking, these ways out are still open: " +
                   Join(report.open, ", "));
}

}  // namespace domicile::site_agent
