// Merkle trees of logs: RFC 9162, sections 2.1.1 to 2.1.4, with SHA-256.
//
// A log keeps its nodes: every complete subtree has a place (level, index) and a hash that never
// changes, so a store needs one row a node, about two a leaf. Appending costs O(log n) and no
// reads; a root or a proof of any size up to the present costs O(log^2 n) reads at most.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::crypto {

// No tree that fits 64-bit sizes has a longer inclusion path; longer proofs are refused unread.
inline constexpr std::size_t kLongestProof = 64;

Digest LeafHash(ByteSpan leaf);                            // SHA-256(0x00 || leaf)
Digest NodeHash(const Digest& left, const Digest& right);  // SHA-256(0x01 || left || right)
Digest EmptyRoot();                                        // SHA-256("")

// The root over leaf hashes in order. O(n).
Digest RootOfLeaves(std::span<const Digest> leaf_hashes);

// The place of a complete subtree: the 2^level leaves from index * 2^level on. Level 0 is a leaf.
struct NodePlace {
  std::uint32_t level = 0;
  std::uint64_t index = 0;
  friend bool operator==(const NodePlace&, const NodePlace&) = default;
  friend auto operator<=>(const NodePlace&, const NodePlace&) = default;
};

struct Node {
  NodePlace place;
  Digest hash;
  friend bool operator==(const Node&, const Node&) = default;
};

// The right edge of a growing tree: what appending and the root need, and no more. O(log n) memory.
// One thread at a time.
class MerkleFrontier {
 public:
  MerkleFrontier() = default;
  // `peaks`: the hashes of PeakPlaces(size), in that order, as a store kept them. The caller
  // compares Root() with a signed head. Errors: kInvalidArgument (their number does not fit the
  // size).
  static StatusOr<MerkleFrontier> Restore(std::uint64_t size, std::vector<Digest> peaks);

  // Appends one leaf and returns the subtrees this completes, the leaf itself first: what a store
  // must keep.
  std::vector<Node> Append(const Digest& leaf_hash);

  std::uint64_t Size() const { return size_; }
  Digest Root() const;
  const std::vector<Digest>& Peaks() const { return peaks_; }  // largest subtree first

 private:
  std::uint64_t size_ = 0;
  std::vector<Digest> peaks_;
};

// The complete subtrees that a tree of this size consists of, largest (leftmost) first.
std::vector<NodePlace> PeakPlaces(std::uint64_t size);

// Reads the hash of a complete subtree from a store. An error ends the proof and is returned as it
// is.
using NodeReader = std::function<StatusOr<Digest>(const NodePlace& place)>;

// A reader over the leaf hashes of a whole tree in memory, which must outlive it. O(2^level) a
// read: for verifiers and tests. Errors of the reader: kOutOfRange.
NodeReader ReadNodesOf(std::span<const Digest> leaf_hashes);

// The root the tree had at `size`. Errors: of the reader.
StatusOr<Digest> RootAt(std::uint64_t size, const NodeReader& read);

// PATH(index, D[size]), from the leaf upward. Errors: kOutOfRange (index >= size), of the reader.
StatusOr<std::vector<Digest>> InclusionProof(std::uint64_t index, std::uint64_t size,
                                             const NodeReader& read);

// PROOF(first, D[second]). Empty if first is 0 (any tree extends the empty one) or the sizes are
// equal. Errors: kOutOfRange (first > second), of the reader.
StatusOr<std::vector<Digest>> ConsistencyProof(std::uint64_t first, std::uint64_t second,
                                               const NodeReader& read);

// Whether the leaf is at `index` of the tree with this size and root. Take size and root together
// from one verified head: a proof does not bind the size. Errors: kInvalidArgument, naming what is
// wrong (index, length of the proof, root).
Status VerifyInclusion(const Digest& leaf_hash, std::uint64_t index, std::uint64_t size,
                       const Digest& root, std::span<const Digest> proof);

// Whether the second tree begins with the first. Equal sizes: equal roots and an empty proof. First
// size 0 is refused: no proof is defined, and every tree extends the empty one, so the caller
// accepts that by rule, without proof. Errors: kInvalidArgument, as above.
Status VerifyConsistency(std::uint64_t first_size, const Digest& first_root,
                         std::uint64_t second_size, const Digest& second_root,
                         std::span<const Digest> proof);

}  // namespace domicile::crypto
