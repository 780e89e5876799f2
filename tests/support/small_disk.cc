#include "tests/support/small_disk.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/file.h"

namespace domicile::test {

namespace {

Status Failed(const std::string& what) {
  return Error(StatusCode::kPermissionDenied, what + ": " + std::strerror(errno));
}

Status WriteOnce(const char* path, const std::string& text) {
  const FileHandle file(open(path, O_WRONLY | O_CLOEXEC));
  if (file.descriptor() < 0 ||
      write(file.descriptor(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Failed(path);
  }
  return OkStatus();
}

// Mounts that nobody else sees, by a user namespace in which this user stays who it is.
Status EnterOwnMounts() {
  static bool entered = false;
  if (entered) {
    return OkStatus();
  }
  const std::string user = std::to_string(getuid());
  const std::string group = std::to_string(getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return Failed("a mount namespace");
  }
  RETURN_IF_ERROR(WriteOnce("/proc/self/setgroups", "deny"));
  RETURN_IF_ERROR(WriteOnce("/proc/self/uid_map", user + " " + user + " 1"));
  RETURN_IF_ERROR(WriteOnce("/proc/self/gid_map", group + " " + group + " 1"));
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Failed("mounts of its own");
  }
  entered = true;
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<SmallDisk>> SmallDisk::Mount(const std::string& folder,
                                                      std::uint64_t bytes) {
  RETURN_IF_ERROR(EnterOwnMounts());
  RETURN_IF_ERROR(CreateFolders(folder));
  const std::string size = "size=" + std::to_string(bytes) + ",mode=700";
  if (mount("tmpfs", folder.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, size.c_str()) != 0) {
    return Failed("mounting a small file system");
  }
  // Not make_unique: the constructor is private.
  return std::unique_ptr<SmallDisk>(new SmallDisk(folder));
}

SmallDisk::~SmallDisk() { umount2(folder_.c_str(), MNT_DETACH); }

Status SmallDisk::Fill() const {
  const FileHandle file(open(Ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.descriptor() < 0) {
    return Failed("making the ballast");
  }
  static constexpr std::array<char, 4096> kBlock{};
  while (write(file.descriptor(), kBlock.data(), kBlock.size()) > 0) {
  }
  return errno == ENOSPC ? OkStatus() : Failed("writing the ballast");
}

Status SmallDisk::MakeRoom() const { return RemoveFile(Ballast()); }

}  // namespace domicile::test
