#include "crypto/merkle.h"

#include <array>
#include <bit>
#include <string>

#include "crypto/sha256.h"

namespace domicile::crypto {

namespace {

// The largest power of two smaller than n, for n >= 2.
std::uint64_t Split(std::uint64_t n) { return std::bit_floor(n - 1); }

Status Refuse(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

// MTH over the leaves [begin, begin + count), count >= 1, where begin is a multiple of the smallest
// power of two that is at least count: what RFC 9162's recursion always asks for. Then each part is
// a complete subtree, but for the right edge, which is put together from its own.
StatusOr<Digest> HashOfRange(std::uint64_t begin, std::uint64_t count, const NodeReader& read) {
  // The complete subtrees in the range, from the left; they fold together from the right.
  std::vector<Digest> parts;
  while (count > 0) {
    const std::uint64_t size = std::bit_floor(count);
    const auto level = static_cast<std::uint32_t>(std::countr_zero(size));
    ASSIGN_OR_RETURN(const Digest part, read({.level = level, .index = begin >> level}));
    parts.push_back(part);
    begin += size;
    count -= size;
  }
  Digest hash = parts.back();
  for (std::size_t i = parts.size() - 1; i-- > 0;) {
    hash = NodeHash(parts[i], hash);
  }
  return hash;
}

Digest FoldPeaks(std::span<const Digest> peaks) {
  if (peaks.empty()) {
    return EmptyRoot();
  }
  Digest root = peaks.back();
  for (std::size_t i = peaks.size() - 1; i-- > 0;) {
    root = NodeHash(peaks[i], root);
  }
  return root;
}

}  // namespace

Digest LeafHash(ByteSpan leaf) {
  static constexpr std::array<std::uint8_t, 1> kPrefix = {0x00};
  thread_local Sha256Hasher hasher;
  hasher.Update(kPrefix);
  hasher.Update(leaf);
  return hasher.Finish();
}

Digest NodeHash(const Digest& left, const Digest& right) {
  std::array<std::uint8_t, 65> bytes{0x01};
  std::copy(left.bytes.begin(), left.bytes.end(), bytes.begin() + 1);
  std::copy(right.bytes.begin(), right.bytes.end(), bytes.begin() + 33);
  return Sha256(bytes);
}

Digest EmptyRoot() { return Sha256({}); }

Digest RootOfLeaves(std::span<const Digest> leaf_hashes) {
  MerkleFrontier frontier;
  for (const Digest& leaf : leaf_hashes) {
    frontier.Append(leaf);
  }
  return frontier.Root();
}

StatusOr<MerkleFrontier> MerkleFrontier::Restore(std::uint64_t size, std::vector<Digest> peaks) {
  if (peaks.size() != static_cast<std::size_t>(std::popcount(size))) {
    return Refuse("a tree of " + std::to_string(size) + " leaves has " +
                  std::to_string(std::popcount(size)) + " peaks, not " +
                  std::to_string(peaks.size()));
  }
  MerkleFrontier frontier;
  frontier.size_ = size;
  frontier.peaks_ = std::move(peaks);
  return frontier;
}

std::vector<Node> MerkleFrontier::Append(const Digest& leaf_hash) {
  std::vector<Node> completed;
  Node node{.place = {.level = 0, .index = size_}, .hash = leaf_hash};
  completed.push_back(node);
  // As in binary addition: each trailing one of the size is a subtree that the new one completes.
  for (std::uint64_t carry = size_; (carry & 1U) != 0; carry >>= 1U) {
    node.hash = NodeHash(peaks_.back(), node.hash);
    node.place = {.level = node.place.level + 1, .index = node.place.index >> 1U};
    peaks_.pop_back();
    completed.push_back(node);
  }
  peaks_.push_back(node.hash);
  ++size_;
  return completed;
}

Digest MerkleFrontier::Root() const { return FoldPeaks(peaks_); }

std::vector<NodePlace> PeakPlaces(std::uint64_t size) {
  std::vector<NodePlace> places;
  std::uint64_t begin = 0;
  while (size > 0) {
    const std::uint64_t subtree = std::bit_floor(size);
    const auto level = static_cast<std::uint32_t>(std::countr_zero(subtree));
    places.push_back({.level = level, .index = begin >> level});
    begin += subtree;
    size -= subtree;
  }
  return places;
}

NodeReader ReadNodesOf(std::span<const Digest> leaf_hashes) {
  return [leaf_hashes](const NodePlace& place) -> StatusOr<Digest> {
    // In terms of what is left after shifting, so that no place can overflow.
    if (place.level >= 64 || place.index >= (std::uint64_t{leaf_hashes.size()} >> place.level)) {
      return Error(StatusCode::kOutOfRange, "no complete subtree at level " +
                                                std::to_string(place.level) + ", index " +
                                                std::to_string(place.index));
    }
    const std::size_t count = std::size_t{1} << place.level;
    return RootOfLeaves(leaf_hashes.subspan(place.index << place.level, count));
  };
}

StatusOr<Digest> RootAt(std::uint64_t size, const NodeReader& read) {
  if (size == 0) {
    return EmptyRoot();
  }
  return HashOfRange(0, size, read);
}

StatusOr<std::vector<Digest>> InclusionProof(std::uint64_t index, std::uint64_t size,
                                             const NodeReader& read) {
  if (index >= size) {
    return Error(StatusCode::kOutOfRange,
                 "leaf " + std::to_string(index) + " is not in a tree of " + std::to_string(size));
  }
  // PATH from the root down: at each split, the half without the leaf.
  std::vector<Digest> path;
  std::uint64_t begin = 0;
  std::uint64_t count = size;
  while (count > 1) {
    const std::uint64_t k = Split(count);
    const bool left = index - begin < k;
    ASSIGN_OR_RETURN(const Digest sibling,
                     left ? HashOfRange(begin + k, count - k, read) : HashOfRange(begin, k, read));
    path.push_back(sibling);
    begin = left ? begin : begin + k;
    count = left ? k : count - k;
  }
  return std::vector<Digest>(path.rbegin(), path.rend());
}

StatusOr<std::vector<Digest>> ConsistencyProof(std::uint64_t first, std::uint64_t second,
                                               const NodeReader& read) {
  if (first > second) {
    return Error(StatusCode::kOutOfRange, "a tree of " + std::to_string(second) +
                                              " does not extend one of " + std::to_string(first));
  }
  std::vector<Digest> proof;
  if (first == 0 || first == second) {
    return proof;
  }
  // SUBPROOF(m, D[n], b) from the root down. `whole` is b: the old tree is this very subtree.
  bool whole = true;
  std::uint64_t begin = 0;
  std::uint64_t count = second;
  std::uint64_t old = first;  // leaves of the old tree within [begin, begin + count)
  while (old != count) {
    const std::uint64_t k = Split(count);
    const bool left = old <= k;
    ASSIGN_OR_RETURN(const Digest sibling,
                     left ? HashOfRange(begin + k, count - k, read) : HashOfRange(begin, k, read));
    proof.push_back(sibling);
    if (left) {
      count = k;
    } else {
      begin += k;
      count -= k;
      old -= k;
      whole = false;
    }
  }
  if (!whole) {
    ASSIGN_OR_RETURN(const Digest seed, HashOfRange(begin, count, read));
    proof.push_back(seed);
  }
  return std::vector<Digest>(proof.rbegin(), proof.rend());
}

// RFC 9162, 2.1.3.2; `fn` and `sn` are the RFC's names.
Status VerifyInclusion(const Digest& leaf_hash, std::uint64_t index, std::uint64_t size,
                       const Digest& root, std::span<const Digest> proof) {
  if (index >= size) {
    return Refuse("leaf " + std::to_string(index) + " is not in a tree of " + std::to_string(size));
  }
  if (proof.size() > kLongestProof) {
    return Refuse("an inclusion proof of " + std::to_string(proof.size()) + " nodes is too long");
  }
  std::uint64_t fn = index;
  std::uint64_t sn = size - 1;
  Digest hash = leaf_hash;
  for (const Digest& node : proof) {
    if (sn == 0) {
      return Refuse("the inclusion proof has nodes left over");
    }
    if ((fn & 1U) != 0 || fn == sn) {
      hash = NodeHash(node, hash);
      while ((fn & 1U) == 0 && fn != 0) {
        fn >>= 1U;
        sn >>= 1U;
      }
    } else {
      hash = NodeHash(hash, node);
    }
    fn >>= 1U;
    sn >>= 1U;
  }
  if (sn != 0) {
    return Refuse("the inclusion proof is too short");
  }
  if (hash != root) {
    return Refuse("the inclusion proof does not lead to the root");
  }
  return OkStatus();
}

namespace {

// RFC 9162, 2.1.4.2, for 0 < first < second and a proof that is not empty.
Status FollowConsistency(std::uint64_t first, const Digest& first_root, std::uint64_t second,
                         const Digest& second_root, std::span<const Digest> proof) {
  std::uint64_t fn = first - 1;
  std::uint64_t sn = second - 1;
  while ((fn & 1U) != 0) {
    fn >>= 1U;
    sn >>= 1U;
  }
  // A first size that is a power of two is itself the first node.
  const bool is_complete = std::has_single_bit(first);
  Digest old_hash = is_complete ? first_root : proof.front();
  Digest new_hash = old_hash;
  for (const Digest& node : proof.subspan(is_complete ? 0 : 1)) {
    if (sn == 0) {
      return Refuse("the consistency proof has nodes left over");
    }
    if ((fn & 1U) != 0 || fn == sn) {
      old_hash = NodeHash(node, old_hash);
      new_hash = NodeHash(node, new_hash);
      while ((fn & 1U) == 0 && fn != 0) {
        fn >>= 1U;
        sn >>= 1U;
      }
    } else {
      new_hash = NodeHash(new_hash, node);
    }
    fn >>= 1U;
    sn >>= 1U;
  }
  if (sn != 0) {
    return Refuse("the consistency proof is too short");
  }
  if (old_hash != first_root) {
    return Refuse("the consistency proof does not lead to the first root");
  }
  if (new_hash != second_root) {
    return Refuse("the consistency proof does not lead to the second root");
  }
  return OkStatus();
}

}  // namespace

Status VerifyConsistency(std::uint64_t first_size, const Digest& first_root,
                         std::uint64_t second_size, const Digest& second_root,
                         std::span<const Digest> proof) {
  if (first_size > second_size) {
    return Refuse("a tree of " + std::to_string(second_size) + " does not extend one of " +
                  std::to_string(first_size));
  }
  if (proof.size() > kLongestProof) {
    return Refuse("a consistency proof of " + std::to_string(proof.size()) + " nodes is too long");
  }
  if (first_size == 0) {
    return Refuse("no consistency proof begins with the empty tree");
  }
  if (first_size == second_size) {
    if (!proof.empty()) {
      return Refuse("the consistency proof has nodes left over");
    }
    if (first_root != second_root) {
      return Refuse("two trees of " + std::to_string(first_size) + " leaves have different roots");
    }
    return OkStatus();
  }
  if (proof.empty()) {
    return Refuse("the consistency proof is too short");
  }
  return FollowConsistency(first_size, first_root, second_size, second_root, proof);
}

}  // namespace domicile::crypto
