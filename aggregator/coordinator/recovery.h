// A site's log that was restored from an older copy: whether it may go on (docs/formats/log.md).
#pragma once

#include "aggregator/coordinator/store.h"
#include "audit/log.h"
#include "audit/recovery.h"
#include "base/ids.h"
#include "base/status.h"
#include "crypto/note.h"

namespace domicile::aggregator {

// Takes a recovery that the site shows, once: the head remembered of its log, the leaf
// `head.recovered` and the mark that it was taken are one transaction. The entry that was taken
// last changes nothing: the site may not have heard of it. Errors: those of audit::TakeRecovery; of
// the store.
Status AcceptRecovery(Store& store, audit::Log& log, const SiteId& site,
                      const crypto::NoteVerifier& key, const audit::RecoveryClaim& claim);

}  // namespace domicile::aggregator
