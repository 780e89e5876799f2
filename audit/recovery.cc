#include "audit/recovery.h"

#include <utility>

#include "crypto/merkle.h"

namespace domicile::audit {

namespace {

Status Refused(const std::string& origin, const std::string& why) {
  return Error(StatusCode::kFailedPrecondition, "the recovery of log `" + origin + "` " + why);
}

// INVARIANT: a recovery replaces a head only if the log really is another one than the head's.
// Otherwise a history could be cut off at will and called a recovery.
Status CheckBehind(const RecoveryClaim& claim, const crypto::Checkpoint& head,
                   const crypto::Checkpoint& remembered) {
  if (claim.index < remembered.size) {
    // A leaf that names this root cannot be under it: the entry in its place was another one.
    return OkStatus();
  }
  if (remembered.size == 0 || claim.root_then == remembered.root) {
    return Refused(head.origin, "is of a log that contains the head it names: it was not behind");
  }
  const Status holds = crypto::VerifyConsistency(remembered.size, claim.root_then, head.size,
                                                 head.root, claim.consistency);
  return holds.ok() ? OkStatus()
                    : Error(StatusCode::kDataLoss,
                            "the recovery of log `" + head.origin +
                                "` does not prove which entries stood there before: " +
                                std::string(Message(holds)));
}

}  // namespace

StatusOr<Event> ToEvent(const LogRecovered& record) {
  JsonArray datasets;
  for (const DatasetAlias& dataset : record.datasets) {
    datasets.emplace_back(dataset.text());
  }
  return EventBuilder(EventType::kLogRecovered)
      .Set("operator", Json(record.operator_name))
      .Set("instance", Json(record.instance))
      .Set("size", Json(record.size))
      .Set("root", record.root)
      .Set("kept", Json(record.kept))
      .Set("remembered_size", Json(record.remembered_size))
      .Set("remembered_root", record.remembered_root)
      .Set("datasets", Json(std::move(datasets)))
      .Build();
}

StatusOr<LogRecovered> ReadLogRecovered(const Event& event) {
  if (event.type() != EventType::kLogRecovered) {
    return Error(StatusCode::kInvalidArgument, "not an event of type `log.recovered`");
  }
  const auto count = [&event](std::string_view field) {
    return static_cast<std::uint64_t>(event.Int(field));
  };
  LogRecovered record{.operator_name = event.Text("operator"),
                      .instance = count("instance"),
                      .size = count("size"),
                      .root = {},
                      .kept = count("kept"),
                      .remembered_size = count("remembered_size"),
                      .remembered_root = {},
                      .datasets = {}};
  ASSIGN_OR_RETURN(record.root, ParseDigest(event.Text("root")));
  ASSIGN_OR_RETURN(record.remembered_root, ParseDigest(event.Text("remembered_root")));
  const Json* datasets = event.body().Find("datasets");
  const JsonArray* names = datasets == nullptr ? nullptr : datasets->TryArray();
  if (names != nullptr) {
    for (const Json& name : *names) {
      const std::string* text = name.TryString();
      ASSIGN_OR_RETURN(record.datasets.emplace_back(),
                       DatasetAlias::Parse(text == nullptr ? std::string() : *text));
    }
  }
  return record;
}

StatusOr<CheckedRecovery> CheckRecovery(const RecoveryClaim& claim, const crypto::NoteVerifier& key,
                                        const crypto::Checkpoint& remembered) {
  ASSIGN_OR_RETURN(const CheckedLeaf checked, CheckLeaf({.index = claim.index,
                                                         .leaf = claim.leaf,
                                                         .proof = claim.proof,
                                                         .head_note = claim.head_note},
                                                        key));
  ASSIGN_OR_RETURN(LogRecovered record, ReadLogRecovered(checked.leaf.event));
  if (record.size != claim.index) {
    return Error(StatusCode::kInvalidArgument,
                 "the recovery of log `" + checked.head.origin + "` misstates where it stands");
  }
  if (checked.head.origin != remembered.origin || record.remembered_size != remembered.size ||
      record.remembered_root != remembered.root) {
    return Refused(checked.head.origin, "names another head than the last one that was seen");
  }
  RETURN_IF_ERROR(CheckBehind(claim, checked.head, remembered));
  return CheckedRecovery{.record = std::move(record), .index = claim.index, .head = checked.head};
}

StatusOr<CheckedRecovery> TakeRecovery(Database& db, const RecoveryClaim& claim,
                                       const crypto::NoteVerifier& key) {
  ASSIGN_OR_RETURN(const std::optional<crypto::Checkpoint> last, PeerHeads(db).Last(key.name()));
  if (!last) {
    return Refused(key.name(), "names a head, but none was seen here");
  }
  ASSIGN_OR_RETURN(CheckedRecovery checked, CheckRecovery(claim, key, *last));
  ASSIGN_OR_RETURN(
      Statement replace,
      db.Prepare("UPDATE log_peer_head SET size = ?, root = ?, note = ? WHERE origin = ?"));
  RETURN_IF_ERROR(replace.Bind(1, static_cast<std::int64_t>(checked.head.size))
                      .Bind(2, ByteSpan(checked.head.root.bytes))
                      .Bind(3, std::string_view(claim.head_note))
                      .Bind(4, key.name())
                      .Run());
  return checked;
}

}  // namespace domicile::audit
