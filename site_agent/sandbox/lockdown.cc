#include "site_agent/sandbox/lockdown.h"

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "site_agent/sandbox/internal/walls.h"

namespace domicile::site_agent {

namespace {

constexpr std::array<std::pair<SandboxLayer, std::string_view>, 6> kLayerNames = {{
    {SandboxLayer::kNetworkNamespace, "network_namespace"},
    {SandboxLayer::kNoNewPrivileges, "no_new_privileges"},
    {SandboxLayer::kLandlock, "landlock"},
    {SandboxLayer::kSystemCalls, "system_calls"},
    {SandboxLayer::kNoCoreFiles, "no_core_files"},
    {SandboxLayer::kCapabilities, "capabilities"},
}};

// What any program of ours may read: libraries, zones, processor lists, its own /proc folder.
constexpr std::array<std::string_view, 9> kSystemPaths = {
    "/lib",         "/lib64",           "/usr/lib",
    "/usr/lib64",   "/etc/ld.so.cache", "/usr/share/zoneinfo",
    "/dev/urandom", "/proc/self",       "/sys/devices/system/cpu"};

// What speaking to a named peer over TLS needs. The whole of /etc, because resolvers and
// certificate stores replace their files, and a rule on a file does not follow to its successor.
constexpr std::array<std::string_view, 7> kNetworkPaths = {"/etc",
                                                           "/usr/share/ca-certificates",
                                                           "/usr/local/share/ca-certificates",
                                                           "/run/systemd/resolve",
                                                           "/run/resolvconf",
                                                           "/run/NetworkManager",
                                                           "/proc/sys/net"};

template <std::size_t N>
void AppendOptional(const std::array<std::string_view, N>& from, std::vector<PathRule>& to) {
  for (const std::string_view path : from) {
    to.push_back({std::string(path), PathAccess::kRead, false});
  }
}

Lockdown Describe(std::span<const PathRule> paths) {
  Lockdown lockdown;
  lockdown.paths.assign(paths.begin(), paths.end());
  AppendOptional(kSystemPaths, lockdown.paths);
  lockdown.paths.push_back({"/dev/null", PathAccess::kWrite, false});
  return lockdown;
}

// Landlock, seccomp and namespaces bind the calling thread: another one would stay outside.
Status RequireOneThread() {
  std::error_code error;
  std::size_t threads = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/task", error), end;
       !error && entry != end; entry.increment(error)) {
    ++threads;
  }
  if (error || threads != 1) {
    return Error(StatusCode::kFailedPrecondition,
                 "locking down: the process must have one thread and a mounted `/proc`");
  }
  return OkStatus();
}

}  // namespace

std::string_view LayerName(SandboxLayer layer) {
  for (const auto& [known, name] : kLayerNames) {
    if (known == layer) {
      return name;
    }
  }
  return "none";
}

std::optional<SandboxLayer> LayerFromName(std::string_view name) {
  for (const auto& [layer, known] : kLayerNames) {
    if (known == name) {
      return layer;
    }
  }
  return std::nullopt;
}

Lockdown TrainerLockdown(std::span<const PathRule> paths) {
  Lockdown lockdown = Describe(paths);
  lockdown.paths.push_back({"/etc/ssl/openssl.cnf", PathAccess::kRead, false});
  return lockdown;
}

Lockdown TrainerLoopbackLockdown(std::span<const PathRule> paths) {
  Lockdown lockdown = TrainerLockdown(paths);
  lockdown.network = NetworkWall::kLoopback;
  lockdown.calls = CallFilter::kLoopback;
  return lockdown;
}

std::vector<PathRule> GpuPaths() {
  std::vector<PathRule> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/dev", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with("nvidia")) {
      paths.push_back({entry->path().string(), PathAccess::kDevice, false});
    }
  }
  if (!paths.empty()) {
    for (const char* folder : {"/proc/driver/nvidia", "/proc/devices", "/proc/modules",
                               "/sys/bus/pci/devices", "/sys/devices", "/etc/nvidia"}) {
      paths.push_back({folder, PathAccess::kRead, false});
    }
  }
  return paths;
}

Lockdown AgentLockdown(std::span<const PathRule> paths) {
  Lockdown lockdown = Describe(paths);
  AppendOptional(kNetworkPaths, lockdown.paths);
  lockdown.network = NetworkWall::kNone;
  lockdown.calls = CallFilter::kAgent;
  return lockdown;
}

StatusOr<SandboxReport> Apply(const Lockdown& lockdown) {
  RETURN_IF_ERROR(RequireOneThread());
  SandboxReport report;
  // The order matters: a namespace needs /proc/self to be writable, which ForbidDumps ends;
  // dropping capabilities comes before ForbidDumps, which it could undo; the filter forbids calls
  // used above it.
  RETURN_IF_ERROR(internal::ForbidCoreFiles());
  if (lockdown.network != NetworkWall::kNone) {
    RETURN_IF_ERROR(internal::EnterNetworkNamespace());
    if (lockdown.network == NetworkWall::kLoopback) {
      RETURN_IF_ERROR(internal::RaiseLoopback());
    }
    report.layers.push_back(SandboxLayer::kNetworkNamespace);
  }
  RETURN_IF_ERROR(internal::ForbidNewPrivileges());
  report.layers.push_back(SandboxLayer::kNoNewPrivileges);
  ASSIGN_OR_RETURN(report.landlock_abi, internal::RestrictFiles(lockdown.paths));
  report.layers.push_back(SandboxLayer::kLandlock);
  RETURN_IF_ERROR(internal::DropCapabilities());
  RETURN_IF_ERROR(internal::ForbidDumps());
  RETURN_IF_ERROR(internal::FilterCalls(lockdown.calls));
  report.layers.push_back(SandboxLayer::kSystemCalls);
  report.layers.push_back(SandboxLayer::kNoCoreFiles);
  report.layers.push_back(SandboxLayer::kCapabilities);
  return report;
}

}  // namespace domicile::site_agent
