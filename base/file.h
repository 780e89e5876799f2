// Files: whole reads, durable writes, folders. Every error names the path and what the system said.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile {

// Errors: kNotFound, kPermissionDenied, kInvalidArgument (longer than `max_bytes`), kUnavailable.
StatusOr<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes);

// Writes a file that is either wholly there or not at all, also after power loss: temporary file in
// the same folder, fsync, rename, fsync of the folder. `mode` as in chmod. A temporary left by a
// crash ends in `.tmp` and is removed by RemoveTemporaries. Errors: kResourceExhausted (no space,
// quota), kPermissionDenied, kNotFound (folder), kUnavailable.
Status WriteFileDurably(const std::string& path, ByteSpan bytes, unsigned mode = 0600);

// Creates a folder and its parents with mode 0700. An existing folder is fine.
Status CreateFolders(const std::string& path);

// The names of the regular files in a folder, sorted. Errors: kNotFound, kPermissionDenied.
StatusOr<std::vector<std::string>> ListFiles(const std::string& folder);

// Removes the `*.tmp` files that a crash left in a folder.
Status RemoveTemporaries(const std::string& folder);

bool FileExists(const std::string& path);
Status RemoveFile(const std::string& path);

// A symbolic link at `path` to `target`, written relative to the link's folder, so that the tree
// can be moved. Errors: kAlreadyExists, kPermissionDenied.
Status LinkFile(const std::string& target, const std::string& path);

// "/a/b" + "c" -> "/a/b/c"; an absolute second part stands alone.
std::string JoinPath(std::string_view folder, std::string_view name);
// A path relative to the folder of `file`, as configuration files name other files.
std::string ResolveBeside(std::string_view file, std::string_view path);

// The Status for `errno` after a failed call about `what`.
Status ErrnoError(int error, std::string_view what);

// Owns a file descriptor. Move-only.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  int descriptor() const { return descriptor_; }
  bool IsOpen() const { return descriptor_ >= 0; }
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Takes an exclusive lock on a file (made if absent) for the life of the handle; the kernel drops
// it when the process dies. Errors: kFailedPrecondition if another process holds it, with `who` in
// the text.
StatusOr<FileHandle> LockFile(const std::string& path, std::string_view who);

}  // namespace domicile
