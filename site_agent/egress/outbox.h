// The life of an update in the outbox: put in by the gate, once for each phase; taken out when its
// outcome is known. Each step is one transaction with the leaf that says it.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <variant>
#include <vector>

#include "audit/records.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "policy/reason.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/site_store.h"
#include "site_agent/egress/statistics_release.h"

namespace domicile::site_agent {

// What the gate lets through. The decision's leaf and the row say the same.
struct Release {
  OutboxRow row;                 // but for `leaf`
  audit::EgressDecided decided;  // its `epsilon_micro` is of the whole run
  WallTime decided_at = {};
  Digest dataset_commitment = {};
  // Of a statistics phase.
  std::optional<StatisticsQuestion> question;
  StatisticsNumbers answer;
};

// The file first, durably, then one transaction: the row that names it, the ledger, the leaf. A
// crash between the two leaves a file that no row names. Refused: kCancelled (stopped, or the job
// has ended), kStaleRound (the phase's outcome is known, or the gate has run for it before),
// kStatDifference, kDiskFull, kLogUnavailable.
std::variant<OutboxRow, policy::Reason> PutInOutbox(Books& books, const Release& release,
                                                    ByteSpan bytes, const std::stop_token& stop);

// A verified commit, applied once: what the next model is measured by, and the end of this site's
// own update if it has one. Errors: kDataLoss (the phase is not one of the plan's, or was committed
// by another leaf before); those of the books.
Status SettleCommit(Books& books, const SiteId& self, const PhaseId& phase,
                    std::uint64_t leaf_index, const audit::PhaseCommitted& commit);

// The job has ended, here at least: nothing of it may leave any more. `why` goes into the leaves.
Status SettleJobEnd(Books& books, const JobId& job,
                    policy::Reason why = policy::Reason::kSuperseded);

// kDiskFull or kLogUnavailable.
policy::Reason StorageReason(const Status& status);

// A phase in the words of the log.
audit::PhaseKey LogKey(const PhaseId& phase, const Epoch& epoch);

}  // namespace domicile::site_agent
