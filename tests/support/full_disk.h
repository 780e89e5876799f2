// A disk that is full from a write on that the test names, under SQLite: what pwrite's ENOSPC is to
// it, at every place where it can come, without a small file system.
#pragma once

#include <cstdint>

namespace domicile::test {

// While it lives, databases that are opened are on this disk. Close them before it goes. One at a
// time, one thread at a time.
class FullDisk {
 public:
  FullDisk();
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  // So many more writes succeed, then each fails, until there is room again.
  void FillAfter(std::uint64_t writes);
  void MakeRoom();
  // Whether a write has failed since FillAfter.
  bool WasFull() const;
};

}  // namespace domicile::test
