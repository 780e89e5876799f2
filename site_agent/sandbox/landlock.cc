// Landlock by bare system calls: the C library has no wrappers, and distributions' headers lag
// behind their kernels, so what they lack is declared here (Linux, include/uapi/linux/landlock.h).
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "site_agent/sandbox/internal/walls.h"

namespace domicile::site_agent {

namespace {

constexpr long kCreateRuleset = 444;  // the same numbers on every architecture
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr std::uint32_t kVersionFlag = 1U;
constexpr int kRulePathBeneath = 1;

constexpr std::uint64_t kExecuteFile = 1U << 0U;
constexpr std::uint64_t kWriteFile = 1U << 1U;
constexpr std::uint64_t kReadFile = 1U << 2U;
constexpr std::uint64_t kReadDir = 1U << 3U;
constexpr std::uint64_t kRemoveDir = 1U << 4U;
constexpr std::uint64_t kRemoveFile = 1U << 5U;
constexpr std::uint64_t kMakeDir = 1U << 7U;
constexpr std::uint64_t kMakeRegular = 1U << 8U;
constexpr std::uint64_t kFirstVersion = (1U << 13U) - 1;  // bits 0 to 12
constexpr std::uint64_t kRefer = 1U << 13U;               // since version 2
constexpr std::uint64_t kTruncate = 1U << 14U;            // 3
constexpr std::uint64_t kDeviceControl = 1U << 15U;       // 5

constexpr std::uint64_t kScopeAbstractSocket = 1U << 0U;  // 6
constexpr std::uint64_t kScopeSignal = 1U << 1U;          // 6

struct RulesetAttributes {
  std::uint64_t handled_files = 0;
  std::uint64_t handled_network = 0;
  std::uint64_t scoped = 0;
};

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

// What a kernel of this version can shut. Whatever it cannot is left to the other walls.
std::uint64_t HandledFiles(std::uint32_t abi) {
  return kFirstVersion | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0) |
         (abi >= 5 ? kDeviceControl : 0);
}

// An older kernel refuses a structure longer than its own.
std::size_t AttributeBytes(std::uint32_t abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

std::uint64_t Rights(PathAccess access, bool folder) {
  switch (access) {
    case PathAccess::kRead:
      return folder ? kReadFile | kReadDir : kReadFile;
    case PathAccess::kWrite:
      return folder ? kReadFile | kReadDir | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir |
                          kMakeRegular | kRefer | kTruncate
                    : kReadFile | kWriteFile | kTruncate;
    case PathAccess::kExecute:
      return folder ? kReadFile | kReadDir | kExecuteFile : kReadFile | kExecuteFile;
    case PathAccess::kDevice:
      return (folder ? kReadDir : 0) | kReadFile | kWriteFile | kDeviceControl;
  }
  return 0;
}

Status AddRule(int ruleset, const PathRule& rule, std::uint64_t handled) {
  const FileHandle path(open(rule.path.c_str(), O_PATH | O_CLOEXEC));
  if (!path.IsOpen()) {
    if (!rule.required && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) {
      return OkStatus();
    }
    return ErrnoError(errno, "opening `" + rule.path + "` for the sandbox");
  }
  struct stat info {};
  if (fstat(path.descriptor(), &info) != 0) {
    return ErrnoError(errno, "reading `" + rule.path + "` for the sandbox");
  }
  const PathBeneath beneath = {Rights(rule.access, S_ISDIR(info.st_mode)) & handled,
                               path.descriptor()};
  if (syscall(kAddRule, ruleset, kRulePathBeneath, &beneath, 0) != 0) {
    return ErrnoError(errno, "adding `" + rule.path + "` to the sandbox");
  }
  return OkStatus();
}

}  // namespace

std::uint32_t ProbeLandlock() {
  const long abi = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  return abi > 0 ? static_cast<std::uint32_t>(abi) : 0;
}

namespace internal {

StatusOr<std::uint32_t> RestrictFiles(std::span<const PathRule> paths) {
  const std::uint32_t abi = ProbeLandlock();
  if (abi == 0) {
    return Error(
        StatusCode::kFailedPrecondition,
        "this host cannot separate this process from files that are not its own: Linux 5.13 "
        "or newer with Landlock enabled is needed (boot parameter `lsm=landlock,...`)");
  }
  // Opening and binding TCP is not Landlock's to decide here: the trainer has no socket at all, and
  // the agent has one peer that its configuration names. Signals and abstract sockets end at the
  // wall.
  const RulesetAttributes attributes = {HandledFiles(abi), 0,
                                        abi >= 6 ? kScopeAbstractSocket | kScopeSignal : 0};
  const FileHandle ruleset(
      static_cast<int>(syscall(kCreateRuleset, &attributes, AttributeBytes(abi), 0)));
  if (!ruleset.IsOpen()) {
    return ErrnoError(errno, "making a Landlock rule set");
  }
  for (const PathRule& rule : paths) {
    RETURN_IF_ERROR(AddRule(ruleset.descriptor(), rule, attributes.handled_files));
  }
  if (syscall(kRestrictSelf, ruleset.descriptor(), 0) != 0) {
    return ErrnoError(errno, "entering the Landlock rule set");
  }
  return abi;
}

}  // namespace internal

}  // namespace domicile::site_agent
