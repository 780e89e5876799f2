#include "audit/peer_heads.h"

#include "crypto/merkle.h"

namespace domicile::audit {

namespace {

std::string Both(const crypto::Checkpoint& last, const crypto::Checkpoint& shown) {
  const auto one = [](const crypto::Checkpoint& head) {
    return std::to_string(head.size) + " entries, root " + PrintHex(head.root);
  };
  return "remembered: " + one(last) + "; shown: " + one(shown);
}

Status Forked(const crypto::Checkpoint& last, const crypto::Checkpoint& shown) {
  return Error(
      StatusCode::kDataLoss,
      "log `" + last.origin + "` is not the history it was before (" + Both(last, shown) + ")");
}

// Whether the smaller of two heads of one log is the beginning of the larger.
Status CheckExtends(const crypto::Checkpoint& last, const crypto::Checkpoint& shown,
                    std::span<const Digest> proof) {
  const crypto::Checkpoint& smaller = shown.size < last.size ? shown : last;
  const crypto::Checkpoint& larger = shown.size < last.size ? last : shown;
  if (smaller.size == larger.size) {
    return smaller.root == larger.root ? OkStatus() : Forked(last, shown);
  }
  if (smaller.size == 0) {
    // Every log extends the empty one; RFC 9162 has no proof for it.
    return smaller.root == crypto::EmptyRoot() ? OkStatus() : Forked(last, shown);
  }
  if (proof.empty()) {
    return Error(StatusCode::kFailedPrecondition,
                 "log `" + last.origin + "`: a consistency proof from " +
                     std::to_string(smaller.size) + " to " + std::to_string(larger.size) +
                     " entries is needed");
  }
  const Status consistent =
      crypto::VerifyConsistency(smaller.size, smaller.root, larger.size, larger.root, proof);
  return consistent.ok() ? OkStatus() : Forked(last, shown);
}

}  // namespace

StatusOr<std::optional<crypto::Checkpoint>> PeerHeads::Last(std::string_view origin) {
  ASSIGN_OR_RETURN(Statement query,
                   db_->Prepare("SELECT size, root FROM log_peer_head WHERE origin = ?"));
  query.Bind(1, origin);
  ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row) {
    return std::optional<crypto::Checkpoint>();
  }
  crypto::Checkpoint head;
  head.origin = origin;
  head.size = static_cast<std::uint64_t>(query.Int(0));
  auto root = DigestFromBytes(query.Blob(1));
  if (!root.ok()) {
    return Error(StatusCode::kDataLoss, "database `" + db_->path() +
                                            "`: the remembered head of log `" +
                                            std::string(origin) + "` has no root of 32 bytes");
  }
  head.root = *root;
  return std::optional<crypto::Checkpoint>(head);
}

StatusOr<std::string> PeerHeads::LastNote(std::string_view origin) {
  ASSIGN_OR_RETURN(Statement query,
                   db_->Prepare("SELECT note FROM log_peer_head WHERE origin = ?"));
  query.Bind(1, origin);
  ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Text(0) : std::string();
}

StatusOr<crypto::Checkpoint> PeerHeads::Check(std::string_view note,
                                              const crypto::NoteVerifier& key,
                                              std::span<const Digest> proof) {
  ASSIGN_OR_RETURN(const crypto::Checkpoint shown, crypto::OpenCheckpoint(note, key));
  ASSIGN_OR_RETURN(const std::optional<crypto::Checkpoint> last, Last(shown.origin));
  if (last) {
    if (shown.size < last->size) {
      return Error(StatusCode::kDataLoss,
                   "log `" + shown.origin + "` shrank (" + Both(*last, shown) + ")");
    }
    RETURN_IF_ERROR(CheckExtends(*last, shown, proof));
    if (shown.size == last->size) {
      return shown;
    }
  }
  ASSIGN_OR_RETURN(
      Statement remember,
      db_->Prepare("INSERT INTO log_peer_head (origin, size, root, note) VALUES "
                   "(?, ?, ?, ?) ON CONFLICT (origin) DO UPDATE SET "
                   "size = excluded.size, root = excluded.root, note = excluded.note"));
  remember.Bind(1, std::string_view(shown.origin))
      .Bind(2, static_cast<std::int64_t>(shown.size))
      .Bind(3, ByteSpan(shown.root.bytes))
      .Bind(4, note);
  RETURN_IF_ERROR(remember.Run());
  return shown;
}

StatusOr<crypto::Checkpoint> PeerHeads::CheckOlder(std::string_view note,
                                                   const crypto::NoteVerifier& key,
                                                   std::span<const Digest> proof) {
  ASSIGN_OR_RETURN(const crypto::Checkpoint shown, crypto::OpenCheckpoint(note, key));
  ASSIGN_OR_RETURN(const std::optional<crypto::Checkpoint> last, Last(shown.origin));
  if (!last || shown.size > last->size) {
    return Error(StatusCode::kFailedPrecondition, "log `" + shown.origin + "`: a head of " +
                                                      std::to_string(shown.size) +
                                                      " entries is newer than the one remembered");
  }
  RETURN_IF_ERROR(CheckExtends(*last, shown, proof));
  return shown;
}

StatusOr<CheckedLeaf> CheckLeaf(const LeafClaim& claim, const crypto::NoteVerifier& key) {
  ASSIGN_OR_RETURN(crypto::Checkpoint head, crypto::OpenCheckpoint(claim.head_note, key));
  const Status included = crypto::VerifyInclusion(crypto::LeafHash(AsBytes(claim.leaf)),
                                                  claim.index, head.size, head.root, claim.proof);
  if (!included.ok()) {
    return Error(StatusCode::kDataLoss,
                 "entry " + std::to_string(claim.index) + " of log `" + head.origin +
                     "` is not proven by its head: " + std::string(Message(included)));
  }
  ASSIGN_OR_RETURN(Leaf leaf, ParseLeaf(claim.leaf));
  if (leaf.frame.origin != head.origin || leaf.frame.seq != claim.index) {
    return Error(StatusCode::kDataLoss,
                 "entry " + std::to_string(claim.index) + " of log `" + head.origin +
                     "` says of itself that it is another entry or of another log");
  }
  return CheckedLeaf{std::move(leaf), std::move(head)};
}

}  // namespace domicile::audit
