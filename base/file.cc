#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace domicile {

namespace {

std::string Quoted(std::string_view path) { return "`" + std::string(path) + "`"; }

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status WriteAll(int descriptor, ByteSpan bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return ErrnoError(errno, "writing " + Quoted(path));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return OkStatus();
}

Status SyncFolder(const std::string& folder) {
  const FileHandle handle(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.IsOpen() || fsync(handle.descriptor()) != 0) {
    return ErrnoError(errno, "syncing folder " + Quoted(folder));
  }
  return OkStatus();
}

}  // namespace

Status ErrnoError(int error, std::string_view what) {
  StatusCode code = StatusCode::kUnavailable;
  switch (error) {
    case ENOENT:
      code = StatusCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = StatusCode::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      code = StatusCode::kResourceExhausted;
      break;
    case EEXIST:
      code = StatusCode::kAlreadyExists;
      break;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case EINVAL:
      code = StatusCode::kInvalidArgument;
      break;
    default:
      break;
  }
  return Error(code, std::string(what) + ": " + std::generic_category().message(error));
}

StatusOr<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) {
  const FileHandle handle(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!handle.IsOpen()) {
    return ErrnoError(errno, "opening " + Quoted(path));
  }
  struct stat info {};
  if (fstat(handle.descriptor(), &info) != 0) {
    return ErrnoError(errno, "reading " + Quoted(path));
  }
  if (S_ISDIR(info.st_mode)) {
    return ErrnoError(EISDIR, "reading " + Quoted(path));
  }
  std::string text;
  std::string block(std::size_t{1} << 16U, '\0');
  while (true) {
    const ssize_t got = read(handle.descriptor(), block.data(), block.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoError(errno, "reading " + Quoted(path));
    }
    if (got == 0) {
      return text;
    }
    text.append(block, 0, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return Error(StatusCode::kInvalidArgument, "reading " + Quoted(path) + ": longer than " +
                                                     std::to_string(max_bytes) + " bytes");
    }
  }
}

Status WriteFileDurably(const std::string& path, ByteSpan bytes, unsigned mode) {
  const std::string temporary = path + ".tmp";
  {
    const FileHandle handle(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!handle.IsOpen()) {
      return ErrnoError(errno, "creating " + Quoted(temporary));
    }
    Status written = WriteAll(handle.descriptor(), bytes, temporary);
    if (written.ok() && fsync(handle.descriptor()) != 0) {
      written = ErrnoError(errno, "syncing " + Quoted(temporary));
    }
    if (!written.ok()) {
      unlink(temporary.c_str());
      return written;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    Status failed = ErrnoError(errno, "renaming to " + Quoted(path));
    unlink(temporary.c_str());
    return failed;
  }
  return SyncFolder(FolderOf(path));
}

Status CreateFolders(const std::string& path) {
  std::string made;
  for (const auto& part : std::filesystem::path(path)) {
    made = (std::filesystem::path(made) / part).string();
    if (mkdir(made.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR) {
      return ErrnoError(errno, "creating folder " + Quoted(made));
    }
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return ErrnoError(ENOTDIR, "creating folder " + Quoted(path));
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> ListFiles(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) {
    return ErrnoError(error.value(), "listing folder " + Quoted(folder));
  }
  for (const auto end = std::filesystem::directory_iterator(); entries != end;
       entries.increment(error)) {
    std::error_code ignored;  // a file that vanished meanwhile is simply not listed
    if (entries->is_regular_file(ignored)) {
      names.push_back(entries->path().filename().string());
    }
  }
  // A failed increment ends the loop as if there were no more entries.
  if (error) {
    return ErrnoError(error.value(), "listing folder " + Quoted(folder));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status RemoveTemporaries(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(folder));
  for (const std::string& name : names) {
    if (name.ends_with(".tmp")) {
      RETURN_IF_ERROR(RemoveFile(JoinPath(folder, name)));
    }
  }
  return OkStatus();
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoError(errno, "removing " + Quoted(path));
  }
  return OkStatus();
}

Status LinkFile(const std::string& target, const std::string& path) {
  const std::string relative =
      std::filesystem::path(target).lexically_relative(FolderOf(path)).string();
  if (symlink(relative.c_str(), path.c_str()) != 0) {
    return ErrnoError(errno, "linking " + Quoted(path));
  }
  return OkStatus();
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  return (std::filesystem::path(folder) / std::filesystem::path(name)).string();
}

std::string ResolveBeside(std::string_view file, std::string_view path) {
  return JoinPath(FolderOf(std::string(file)), path);
}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

StatusOr<FileHandle> LockFile(const std::string& path, std::string_view who) {
  FileHandle handle(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!handle.IsOpen()) {
    return ErrnoError(errno, "opening " + Quoted(path));
  }
  if (flock(handle.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error(StatusCode::kFailedPrecondition,
                   Quoted(path) + " is locked: another " + std::string(who) +
                       " runs on this folder; stop it, or use a folder of its own");
    }
    return ErrnoError(errno, "locking " + Quoted(path));
  }
  return handle;
}

}  // namespace domicile
