#include "wire/shared_bytes.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"

namespace domicile::wire {

SharedBytes ShareBytes(Bytes bytes) {
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  const ByteSpan view = *owner;
  return {std::move(owner), view};
}

StatusOr<SharedBytes> MapFile(const std::string& path) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.IsOpen()) {
    return ErrnoError(errno, path);
  }
  struct stat info = {};
  if (::fstat(file.descriptor(), &info) != 0) {
    return ErrnoError(errno, path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error(StatusCode::kInvalidArgument, "`" + path + "` is not a regular file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {
    return SharedBytes{};  // mmap takes no empty range
  }
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (memory == MAP_FAILED) {
    return ErrnoError(errno, path);
  }
  std::shared_ptr<const void> owner(
      memory, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  return SharedBytes{std::move(owner), {static_cast<const std::uint8_t*>(memory), size}};
}

}  // namespace domicile::wire
