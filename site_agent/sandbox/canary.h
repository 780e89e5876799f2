// The canary: a locked process tries the ways out and says which are open. Evidence for each start,
// not a promise; it is also what the tests run with and without the walls.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace domicile::site_agent {

struct CanaryReport {
  std::vector<std::string> tried;  // closed names: "socket_inet", "ptrace", "write_tmp", ...
  std::vector<std::string> open;   // those of `tried` that got through
};

// For the trainer: sockets of every family, connecting, ptrace, mounts, namespaces, io_uring, bpf,
// reading `shut_paths` (files that exist and are not the trainer's), writing outside. Leaves
// nothing behind if an attempt gets through. Forks nothing, starts no thread.
CanaryReport TrainerCanary(std::span<const std::string> shut_paths);
// For a trainer with a loopback of its own: sockets of the internet families may be made there, but
// lead nowhere.
CanaryReport TrainerLoopbackCanary(std::span<const std::string> shut_paths);

// For the agent: as above without the sockets, which it needs.
CanaryReport AgentCanary(std::span<const std::string> shut_paths);

// OK if nothing was open; else kFailedPrecondition that names each open way.
Status RequireShut(const CanaryReport& report);

}  // namespace domicile::site_agent
