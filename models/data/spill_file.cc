#include "models/data/spill_file.h"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace domicile::models {

StatusOr<SpillFile> SpillFile::Create(const std::string& folder, std::uint64_t max_bytes) {
  FileHandle file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.IsOpen()) {
    return SpillFile(std::move(file), max_bytes);
  }
  if (errno != EOPNOTSUPP && errno != EISDIR) {
    return ErrnoError(errno, "making a file in `" + folder + "`");
  }
  // A file system that cannot make one without a name: the name goes at once.
  std::string path = JoinPath(folder, "cache-XXXXXX");
  file = FileHandle(mkostemp(path.data(), O_CLOEXEC));
  if (!file.IsOpen() || unlink(path.c_str()) != 0) {
    return ErrnoError(errno, "making a file in `" + folder + "`");
  }
  return SpillFile(std::move(file), max_bytes);
}

bool SpillFile::Append(ByteSpan record) {
  const std::uint64_t begin = SizeBytes();
  if (record.size() > max_bytes_ || begin > max_bytes_ - record.size()) {
    return false;
  }
  for (std::size_t done = 0; done < record.size();) {
    const ssize_t wrote = pwrite(file_.descriptor(), record.data() + done, record.size() - done,
                                 static_cast<off_t>(begin + done));
    if (wrote <= 0) {
      if (wrote < 0 && errno == EINTR) {
        continue;
      }
      return false;
    }
    done += static_cast<std::size_t>(wrote);
  }
  ends_.push_back(begin + record.size());
  return true;
}

bool SpillFile::Read(std::size_t index, Bytes& record) const {
  const std::uint64_t begin = index == 0 ? 0 : ends_.at(index - 1);
  record.resize(ends_.at(index) - begin);
  for (std::size_t done = 0; done < record.size();) {
    const ssize_t got = pread(file_.descriptor(), record.data() + done, record.size() - done,
                              static_cast<off_t>(begin + done));
    if (got <= 0) {
      if (got < 0 && errno == EINTR) {
        continue;
      }
      return false;
    }
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace domicile::models
