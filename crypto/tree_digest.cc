#include "crypto/tree_digest.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "crypto/merkle.h"

namespace domicile::crypto {

namespace {

constexpr std::array<std::uint8_t, 1> kLeafPrefix = {0x00};
constexpr std::size_t kReadBytes = std::size_t{1} << 18U;  // stays in a core's cache

// Feeds a whole file to `take`, piece by piece; returns its size.
template <typename Take>
StatusOr<std::uint64_t> ReadPieces(const std::string& path, const Take& take) {
  const std::string quoted = "`" + path + "`";
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.IsOpen()) {
    return ErrnoError(errno, "opening " + quoted);
  }
  std::uint64_t size = 0;
  Bytes buffer(kReadBytes);
  while (true) {
    const ssize_t got = read(file.descriptor(), buffer.data(), buffer.size());
    if (got == 0) {
      return size;
    }
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return ErrnoError(errno, "reading " + quoted);
    }
    size += static_cast<std::uint64_t>(got);
    take(ByteSpan(buffer.data(), static_cast<std::size_t>(got)));
  }
}

}  // namespace

Digest TreeLeafHash(ByteSpan chunk) {
  DOMICILE_CHECK(!chunk.empty() && chunk.size() <= kTreeLeafBytes);
  return LeafHash(chunk);
}

std::uint64_t TreeLeafCount(std::uint64_t size_bytes) {
  return size_bytes / kTreeLeafBytes + (size_bytes % kTreeLeafBytes == 0 ? 0 : 1);
}

Digest TreeDigestOfLeaves(std::span<const Digest> leaf_hashes) { return RootOfLeaves(leaf_hashes); }

Digest TreeDigest(ByteSpan blob) {
  TreeHasher hasher;
  hasher.Update(blob);
  return hasher.Finish();
}

TreeHasher::TreeHasher() { leaf_.Update(kLeafPrefix); }

void TreeHasher::Update(ByteSpan bytes) {
  DOMICILE_CHECK(!finished_);
  size_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t take = std::min(kTreeLeafBytes - leaf_bytes_, bytes.size());
    leaf_.Update(bytes.first(take));
    leaf_bytes_ += take;
    bytes = bytes.subspan(take);
    if (leaf_bytes_ == kTreeLeafBytes) {
      CloseLeaf();
    }
  }
}

void TreeHasher::CloseLeaf() {
  leaves_.push_back(leaf_.Finish());
  leaf_.Update(kLeafPrefix);
  leaf_bytes_ = 0;
}

Digest TreeHasher::Finish() {
  if (!finished_ && leaf_bytes_ > 0) {
    CloseLeaf();
  }
  finished_ = true;
  return RootOfLeaves(leaves_);
}

StatusOr<FileDigest> FileTreeDigest(const std::string& path) {
  TreeHasher hasher;
  ASSIGN_OR_RETURN(const std::uint64_t size,
                   ReadPieces(path, [&hasher](ByteSpan piece) { hasher.Update(piece); }));
  return FileDigest{.digest = hasher.Finish(), .size_bytes = size};
}

StatusOr<FileDigest> FileSha256(const std::string& path) {
  Sha256Hasher hasher;
  ASSIGN_OR_RETURN(const std::uint64_t size,
                   ReadPieces(path, [&hasher](ByteSpan piece) { hasher.Update(piece); }));
  return FileDigest{.digest = hasher.Finish(), .size_bytes = size};
}

}  // namespace domicile::crypto
