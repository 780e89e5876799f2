// Walls around the current process, put up once, at the start of `main`, before any thread exists.
//
// The trainer reads data and has no network; the agent has the network and cannot open the data.
// Both are described here as values and applied to the running process; nothing takes a wall down
// again. What each wall stops is in README.md; threats F3, F18, F19 say why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile::site_agent {

// A wall that stands. Written to logs and sent in hello: append, never renumber.
enum class SandboxLayer : std::uint8_t {
  kNone = 0,
  kNetworkNamespace = 1,  // a network namespace with nothing in it but a loopback
  kNoNewPrivileges = 2,   // no set-user-id program gives anything
  kLandlock = 3,          // files: only the paths listed
  kSystemCalls = 4,       // seccomp: the calls that go around the other walls fail with EPERM
  kNoCoreFiles = 5,       // no memory image, neither to a file nor through a pipe to a collector
  kCapabilities = 6,      // none kept, but reading files of other users if started as root
};

// The closed spelling: "network_namespace", "landlock", ... Never empty.
std::string_view LayerName(SandboxLayer layer);
std::optional<SandboxLayer> LayerFromName(std::string_view name);

// All include reading; kDevice writing and control calls.
enum class PathAccess : std::uint8_t { kRead = 0, kWrite = 1, kExecute = 2, kDevice = 3 };

// A file or a whole folder. Links are followed when the wall is put up.
struct PathRule {
  std::string path;
  PathAccess access = PathAccess::kRead;
  bool required = true;  // false: left out where it does not exist
  friend bool operator==(const PathRule&, const PathRule&) = default;
};

// Which calls fail.
enum class CallFilter : std::uint8_t {
  kAgent = 0,     // no ptrace, mounts, namespaces, io_uring, bpf, kexec, modules, descriptor theft,
                  // program start
  kTrainer = 1,   // and no new socket of any family, no descriptor passing
  kLauncher = 2,  // as kTrainer, but programs may be started
  kLoopback = 3,  // as kTrainer, but sockets of the internet families may be made, and netlink's
};

// What a process can reach of networks by sockets that it makes.
enum class NetworkWall : std::uint8_t {
  kNone = 0,      // no wall
  kEmpty = 1,     // a namespace with a loopback that is down
  kLoopback = 2,  // a namespace with a loopback that is up
};

// What a process may still do. A value: making one changes nothing.
struct Lockdown {
  std::vector<PathRule> paths;  // everything not listed is shut
  NetworkWall network = NetworkWall::kEmpty;
  CallFilter calls = CallFilter::kTrainer;
};

// The trainer's: the given paths, system libraries, and no network. Call Apply after the listening
// socket exists and before any data file is opened.
Lockdown TrainerLockdown(std::span<const PathRule> paths);
// The same, but the process may speak with itself over loopback, as NCCL does even on one host.
Lockdown TrainerLoopbackLockdown(std::span<const PathRule> paths);
// What a process needs of this host to use its NVIDIA devices; nothing where there are none.
std::vector<PathRule> GpuPaths();

// The agent's: the given paths (its configuration, identity, grants to read; its state to write),
// system libraries, name resolution and certificate authorities; the network stays. `paths` must
// name no folder that holds data.
Lockdown AgentLockdown(std::span<const PathRule> paths);

struct SandboxReport {
  std::vector<SandboxLayer> layers;  // in order of numbers; what really stands, not what was wished
  std::uint32_t landlock_abi = 0;
};

// The Landlock version of this kernel, 0 if it has none or it is switched off.
std::uint32_t ProbeLandlock();

// Puts all walls up around the calling process. It must have one thread. On an error the process
// may be half locked: the caller ends. Errors:
//   kFailedPrecondition  the host cannot give a wall ("this host cannot separate the trainer from
//   the
//                        network: ..."), with what it needs; or the process has several threads
//   kNotFound, kPermissionDenied  a required path cannot be opened
StatusOr<SandboxReport> Apply(const Lockdown& lockdown);

}  // namespace domicile::site_agent
