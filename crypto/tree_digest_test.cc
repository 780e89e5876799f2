#include "crypto/tree_digest.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "crypto/merkle.h"

namespace domicile::crypto {
namespace {

Bytes RandomBytes(std::size_t size) {
  Bytes bytes(size);
  SeededRandom(size).Fill(bytes);
  return bytes;
}

// The definition, spelled out without the incremental code: split at the largest power of two.
Digest Definition(ByteSpan blob) {
  if (blob.empty()) {
    return Sha256({});
  }
  if (blob.size() <= kTreeLeafBytes) {
    Bytes leaf = {0x00};
    leaf.insert(leaf.end(), blob.begin(), blob.end());
    return Sha256(leaf);
  }
  const std::size_t leaves = (blob.size() + kTreeLeafBytes - 1) / kTreeLeafBytes;
  std::size_t left = 1;
  while (left * 2 < leaves) {
    left *= 2;
  }
  Bytes node = {0x01};
  for (const ByteSpan half :
       {blob.first(left * kTreeLeafBytes), blob.subspan(left * kTreeLeafBytes)}) {
    const Digest hash = Definition(half);
    node.insert(node.end(), hash.bytes.begin(), hash.bytes.end());
  }
  return Sha256(node);
}

TEST_CASE("TreeDigest: it is the definition at and around leaf borders") {
  const std::size_t sizes[] = {0,
                               1,
                               kTreeLeafBytes - 1,
                               kTreeLeafBytes,
                               kTreeLeafBytes + 1,
                               2 * kTreeLeafBytes,
                               3 * kTreeLeafBytes + 7,
                               5 * kTreeLeafBytes};
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    const Bytes blob = RandomBytes(size);
    CHECK(TreeDigest(blob) == Definition(blob));
  }
}

TEST_CASE("TreeDigest: a blob of one leaf and its leaf hash as a blob are different things") {
  const Bytes blob = RandomBytes(2 * kTreeLeafBytes);
  const Digest left = TreeLeafHash(ByteSpan(blob).first(kTreeLeafBytes));
  const Digest right = TreeLeafHash(ByteSpan(blob).subspan(kTreeLeafBytes));
  Bytes inner(left.bytes.begin(), left.bytes.end());
  inner.insert(inner.end(), right.bytes.begin(), right.bytes.end());

  CHECK(TreeDigest(inner) != TreeDigest(blob));
}

TEST_CASE("TreeHasher: pieces of any size give the same leaves and digest") {
  const Bytes blob = RandomBytes(3 * kTreeLeafBytes + 12345);
  for (const std::size_t piece : {std::size_t{4096}, std::size_t{777'777}, blob.size()}) {
    CAPTURE(piece);
    TreeHasher hasher;
    ByteSpan rest = blob;
    while (!rest.empty()) {
      const std::size_t take = std::min(piece, rest.size());
      hasher.Update(rest.first(take));
      rest = rest.subspan(take);
    }
    CHECK(hasher.FinishedLeaves().size() == 3);  // the last one is not complete yet
    CHECK(hasher.Finish() == TreeDigest(blob));
    CHECK(hasher.SizeBytes() == blob.size());
    REQUIRE(hasher.FinishedLeaves().size() == TreeLeafCount(blob.size()));
    CHECK(hasher.FinishedLeaves()[1] ==
          TreeLeafHash(ByteSpan(blob).subspan(kTreeLeafBytes, kTreeLeafBytes)));
    CHECK(TreeDigestOfLeaves(hasher.FinishedLeaves()) == TreeDigest(blob));
  }
}

TEST_CASE("TreeHasher: a receiver finds a changed chunk before the next one") {
  Bytes blob = RandomBytes(3 * kTreeLeafBytes);
  TreeHasher sender;
  sender.Update(blob);
  const Digest digest = sender.Finish();
  const std::vector<Digest> leaves(sender.FinishedLeaves().begin(), sender.FinishedLeaves().end());
  CHECK(TreeDigestOfLeaves(leaves) == digest);

  blob[kTreeLeafBytes + 5] ^= 1U;
  TreeHasher receiver;
  receiver.Update(ByteSpan(blob).first(2 * kTreeLeafBytes));

  CHECK(receiver.FinishedLeaves()[0] == leaves[0]);
  CHECK(receiver.FinishedLeaves()[1] != leaves[1]);
}

TEST_CASE("TreeLeafCount: only an empty blob has no leaf") {
  CHECK(TreeLeafCount(0) == 0);
  CHECK(TreeLeafCount(1) == 1);
  CHECK(TreeLeafCount(kTreeLeafBytes) == 1);
  CHECK(TreeLeafCount(kTreeLeafBytes + 1) == 2);
  CHECK(TreeLeafCount(UINT64_MAX) == (std::uint64_t{1} << 44U));
}

TEST_CASE("FileTreeDigest: a file has the digest of its bytes, and a missing one an error") {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("domicile-tree-" + std::to_string(getpid()));
  REQUIRE(CreateFolders(folder).ok());
  const std::string path = JoinPath(folder, "blob");
  const Bytes blob = RandomBytes(kTreeLeafBytes + 99);
  REQUIRE(WriteFileDurably(path, blob).ok());

  const auto tree = FileTreeDigest(path);
  const auto plain = FileSha256(path);
  const auto missing = FileTreeDigest(path + ".none");

  REQUIRE(tree.ok());
  CHECK(tree->digest == TreeDigest(blob));
  CHECK(tree->size_bytes == blob.size());
  REQUIRE(plain.ok());
  CHECK(plain->digest == Sha256(blob));
  CHECK(missing.status().code() == StatusCode::kNotFound);
  CHECK(std::string(Message(missing.status())).find(path + ".none") != std::string::npos);
  CHECK_FALSE(FileTreeDigest(folder).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace domicile::crypto
