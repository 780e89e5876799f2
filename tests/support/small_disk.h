// A file system of a few megabytes that programs under test write to, and that can be filled: a
// full disk as the kernel makes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace domicile::test {

// One thread at a time. Goes when it is destroyed; the programs that use it must have ended.
class SmallDisk {
 public:
  // At `folder`, which is made. The process moves into mounts of its own first, so it must have no
  // threads yet; what it starts later sees the disk. Errors: kPermissionDenied, this machine gives
  // no such namespace.
  static StatusOr<std::unique_ptr<SmallDisk>> Mount(const std::string& folder, std::uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Takes all that is free, down to the last byte. Errors: those of writing.
  Status Fill() const;
  Status MakeRoom() const;

 private:
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {}
  std::string Ballast() const { return folder_ + "/ballast"; }

  std::string folder_;
};

}  // namespace domicile::test
