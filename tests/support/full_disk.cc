#include "tests/support/full_disk.h"

#include <algorithm>
#include <array>
#include <limits>

#include <sqlite3.h>

#include "base/status.h"

namespace domicile::test {

namespace {

constexpr std::uint64_t kRoom = std::numeric_limits<std::uint64_t>::max();

// The methods of a kind of file (a database and its journal are two kinds), with one replaced.
struct Methods {
  const sqlite3_io_methods* real = nullptr;
  sqlite3_io_methods replaced{};
};

// SQLite calls back with files of its own, so the disk is one for the process.
struct Disk {
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs vfs{};
  std::array<Methods, 4> methods;
  std::uint64_t writes_left = kRoom;
  bool was_full = false;
};
Disk& TheDisk() {
  static Disk disk;
  return disk;
}

int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  Disk& disk = TheDisk();
  if (disk.writes_left == 0) {
    disk.was_full = true;
    return SQLITE_FULL;
  }
  disk.writes_left -= disk.writes_left == kRoom ? 0 : 1;
  const auto methods =
      std::find_if(disk.methods.begin(), disk.methods.end(),
                   [&](const Methods& m) { return &m.replaced == file->pMethods; });
  DOMICILE_CHECK(methods != disk.methods.end());
  return methods->real->xWrite(file, bytes, size, offset);
}

// No test outlives a power failure, and waiting for disks would be all of its time.
int Sync(sqlite3_file* /*file*/, int /*flags*/) { return SQLITE_OK; }

int Open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  Disk& disk = TheDisk();
  const int result = disk.real->xOpen(disk.real, name, file, flags, out_flags);
  if (file->pMethods == nullptr) {
    return result;
  }
  const auto methods =
      std::find_if(disk.methods.begin(), disk.methods.end(),
                   [&](const Methods& m) { return m.real == file->pMethods || m.real == nullptr; });
  DOMICILE_CHECK(methods != disk.methods.end());
  methods->real = file->pMethods;
  methods->replaced = *file->pMethods;
  methods->replaced.xWrite = Write;
  methods->replaced.xSync = Sync;
  file->pMethods = &methods->replaced;
  return result;
}

}  // namespace

FullDisk::FullDisk() {
  Disk& disk = TheDisk();
  DOMICILE_CHECK(disk.real == nullptr);
  disk = {};
  disk.real = sqlite3_vfs_find(nullptr);
  DOMICILE_CHECK(disk.real != nullptr);
  disk.vfs = *disk.real;
  disk.vfs.zName = "domicile-full-disk";
  disk.vfs.pNext = nullptr;
  disk.vfs.xOpen = Open;
  DOMICILE_CHECK(sqlite3_vfs_register(&disk.vfs, 1) == SQLITE_OK);
}

FullDisk::~FullDisk() {
  Disk& disk = TheDisk();
  sqlite3_vfs_unregister(&disk.vfs);
  sqlite3_vfs_register(disk.real, 1);
  disk.real = nullptr;
}

void FullDisk::FillAfter(std::uint64_t writes) {
  TheDisk().writes_left = writes;
  TheDisk().was_full = false;
}

void FullDisk::MakeRoom() { TheDisk().writes_left = kRoom; }

bool FullDisk::WasFull() const { return TheDisk().was_full; }

}  // namespace domicile::test
