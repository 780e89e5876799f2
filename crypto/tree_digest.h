// The digest that names a blob (a model, an update): the RFC 9162 Merkle tree hash over its 1 MiB
// leaves. Each chunk verifies by itself on arrival. Page: docs/formats/digest.md.
//
//   leaf   SHA-256(0x00 || up to 1 MiB of the blob; only the last may be shorter)
//   node   SHA-256(0x01 || left || right), split at the largest power of two below the leaf count
//   empty  SHA-256("")
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "crypto/sha256.h"

namespace domicile::crypto {

inline constexpr std::size_t kTreeLeafBytes = std::size_t{1} << 20U;

// The digest of a blob in memory. O(size). Reentrant.
Digest TreeDigest(ByteSpan blob);

// The leaf hash of one chunk: kTreeLeafBytes bytes, or fewer (not none) if it is the blob's last.
Digest TreeLeafHash(ByteSpan chunk);

// How many leaves a blob of that size has; 0 for an empty blob.
std::uint64_t TreeLeafCount(std::uint64_t size_bytes);

// The blob's digest from its leaf hashes, in order.
Digest TreeDigestOfLeaves(std::span<const Digest> leaf_hashes);

// The digest of a blob that comes piece by piece, pieces of any size.
//
// A receiver that was given the leaf hashes first checks TreeDigestOfLeaves against the digest it
// wants, then compares each hash that appears in FinishedLeaves() with its own list and stops at
// the first that differs. One thread at a time.
class TreeHasher {
 public:
  TreeHasher();

  void Update(ByteSpan bytes);
  // The hashes of the leaves that are complete so far; after Finish, of all.
  std::span<const Digest> FinishedLeaves() const { return leaves_; }
  std::uint64_t SizeBytes() const { return size_bytes_; }
  // The digest. Closes the last, shorter leaf: afterwards nothing more may be added.
  Digest Finish();

 private:
  void CloseLeaf();

  Sha256Hasher leaf_;
  std::size_t leaf_bytes_ = 0;  // in the open leaf
  std::uint64_t size_bytes_ = 0;
  std::vector<Digest> leaves_;
  bool finished_ = false;
};

struct FileDigest {
  Digest digest;
  std::uint64_t size_bytes = 0;
};

// The tree digest of a file, read once in pieces. Errors: kNotFound, kPermissionDenied,
// kInvalidArgument (a folder), kUnavailable.
StatusOr<FileDigest> FileTreeDigest(const std::string& path);

// The plain SHA-256 of a file (a trainer's program, for its grant). Errors: as FileTreeDigest.
StatusOr<FileDigest> FileSha256(const std::string& path);

}  // namespace domicile::crypto
