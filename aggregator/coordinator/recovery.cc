#include "aggregator/coordinator/recovery.h"

#include "audit/event.h"
#include "base/log.h"
#include "crypto/merkle.h"

namespace domicile::aggregator {

Status AcceptRecovery(Store& store, audit::Log& log, const SiteId& site,
                      const crypto::NoteVerifier& key, const audit::RecoveryClaim& claim) {
  const Digest leaf = crypto::LeafHash(AsBytes(claim.leaf));
  ASSIGN_OR_RETURN(const Digest taken, store.LastRecovery(site));
  if (taken == leaf) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store.Db()));
  ASSIGN_OR_RETURN(const audit::CheckedRecovery checked,
                   audit::TakeRecovery(store.Db(), claim, key));
  ASSIGN_OR_RETURN(const audit::Event event,
                   audit::EventBuilder(audit::EventType::kHeadRecovered)
                       .Set("log", Json(checked.head.origin))
                       .Set("recovered_seq", Json(checked.index))
                       .Set("size", Json(checked.head.size))
                       .Set("root", checked.head.root)
                       .Set("remembered_size", Json(checked.record.remembered_size))
                       .Set("remembered_root", checked.record.remembered_root)
                       .Build());
  RETURN_IF_ERROR(log.Append(event).status());
  RETURN_IF_ERROR(store.SetLastRecovery(site, leaf));
  RETURN_IF_ERROR(transaction.Commit());
  LogWarning("site `" + site.text() + "` goes on from a restored copy; entries " +
             std::to_string(checked.record.kept) + " to " +
             std::to_string(checked.record.remembered_size - 1) + " of its log are lost");
  return OkStatus();
}

}  // namespace domicile::aggregator
