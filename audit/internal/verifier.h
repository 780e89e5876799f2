// The verifier's bookkeeping: one pass over the leaves, with the heads that are to be met on the
// way. Its own tree, so that an error in the tree of the writer cannot hide itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "audit/verify.h"
#include "base/bytes.h"

namespace domicile::audit::internal {

// A complete subtree: the 2^level leaves from index * 2^level on.
struct Subtree {
  std::uint32_t level = 0;
  std::uint64_t index = 0;
  Digest hash;
};

// RFC 9162, 2.1.1, leaf by leaf.
class TreeHash {
 public:
  // Returns the subtrees of two or more leaves that this leaf completes, smallest first.
  std::vector<Subtree> Append(const Digest& leaf_hash);
  std::uint64_t Size() const { return size_; }
  Digest Root() const;

 private:
  std::uint64_t size_ = 0;
  std::vector<Digest> stack_;  // roots of the complete subtrees, largest first
};

// One thread at a time.
class Verifier {
 public:
  // Reads the heads from outside.
  explicit Verifier(const VerifyOptions& options);

  void Find(FindingKind kind, std::optional<std::uint64_t> seq, std::string text);

  // A head stored beside the leaves. Before the first leaf.
  void AddInsideHead(std::int64_t size, const Bytes& root, const std::string& note);

  // A leaf with the number of its row or line. Returns what the tree gained, by the bytes and by
  // the stored hashes: a stored subtree hash should equal one of the two.
  struct Grown {
    std::vector<Subtree> by_bytes;
    std::vector<Subtree> by_stored;
  };
  Grown AddLeaf(std::uint64_t row, std::string_view bytes, const std::optional<Bytes>& stored_hash);

  std::uint64_t Size() const { return by_bytes_.Size(); }
  // Whether leaf and row numbers were without a gap so far.
  bool InSequence() const { return in_sequence_; }

  VerifyReport Finish();

 private:
  struct KnownHead {
    crypto::Checkpoint checkpoint;
    std::string where;
    bool outside = false;
  };

  std::optional<crypto::Checkpoint> OpenHead(std::string_view note, const std::string& where);
  void CheckContent(std::uint64_t place, std::string_view bytes);
  void CheckEvent(std::uint64_t place, std::string_view bytes);
  void CheckRecovery(std::uint64_t place, const Event& event);
  // Whether a recovery names this head: then the entries it is about were lost, and it is said so.
  bool ExplainedByRecovery(const crypto::Checkpoint& head);
  void SayRootDiffers(const KnownHead& head, const Digest& here, std::uint64_t agreed);
  void JudgeDiffering();
  void CheckNumber(std::uint64_t place, std::uint64_t expected, std::uint64_t found);
  void MeetHeads();
  void MeetHead(const KnownHead& head);
  void ExplainHashes();
  void SayWhatWasNotChecked();

  const VerifyOptions& options_;
  VerifyReport report_;
  TreeHash by_bytes_;
  TreeHash by_stored_;  // leaves by their stored hash: tells a changed hash from changed bytes
  std::multimap<std::uint64_t, KnownHead> waiting_;  // by size
  // Heads from outside whose roots differ, with the root of this log and the greatest size that had
  // agreed by then. A recovery that explains one may come later.
  struct Differing {
    KnownHead head;
    Digest here;
    std::uint64_t agreed = 0;
  };
  std::vector<Differing> differing_;
  std::uint64_t outside_given_ = 0;
  std::uint64_t agreed_size_ = 0;         // greatest size a head agreed with
  std::uint64_t stored_agreed_size_ = 0;  // likewise for the tree of stored hashes
  bool last_root_differed_ = false;
  bool in_sequence_ = true;
  std::uint64_t next_row_ = 0;
  std::uint64_t next_seq_ = 0;
  std::optional<Frame> last_frame_;
};

}  // namespace domicile::audit::internal
