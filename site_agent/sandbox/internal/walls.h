// The single walls that Apply (../lockdown.h) puts up, each around the calling process and for
// ever. Every error says what the host lacks and what it needs.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "site_agent/sandbox/lockdown.h"

namespace domicile::site_agent::internal {

// Moves the process into a network namespace of its own; its loopback stays down. Without privilege
// it does so inside a user namespace that maps this user to itself. Where the host allows neither,
// a namespace made by the service manager counts, if nothing but a loopback is in it.
Status EnterNetworkNamespace();
// Takes up the loopback of that namespace.
Status RaiseLoopback();

// Whether the present network namespace holds no interface but `lo`.
bool OnlyLoopback();

// Limits and flags that keep a memory image from being written or piped to a collector.
Status ForbidCoreFiles();
// The last of them, undone by changes of credentials: call it after those.
Status ForbidDumps();

Status ForbidNewPrivileges();

// Gives up every capability, but the one to open files of other users where the process has it:
// data may belong to another user than the trainer started as root. Landlock still bounds it.
Status DropCapabilities();

// Landlock; needs ForbidNewPrivileges before. Returns the ABI used.
StatusOr<std::uint32_t> RestrictFiles(std::span<const PathRule> paths);

// seccomp; needs ForbidNewPrivileges before. Last of all, since it forbids what the others use.
Status FilterCalls(CallFilter filter);
// Threads only from now on; to be put on top of FilterCalls.
Status RefuseProcesses();

}  // namespace domicile::site_agent::internal
