// Double entry: a site's log against the aggregator's. What the site says it sent must be what the
// aggregator says it received, and what was counted must be what was received. Two logs written by
// two parties; an omission in one of them shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/event.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"

namespace domicile::audit {

enum class MatchClass : std::uint8_t {
  kUnexplained = 0,  // one side says what the other does not: the only class that is a failure
  kMatched = 1,      // both say the same
  kInFlight = 2,     // begun, and neither end nor failure logged yet
  kAborted = 3,      // the site says it broke off; the bytes that arrived are within those it wrote
  kRefused = 4,      // the aggregator refused it, and the site says it tried
  kLost = 5,  // the aggregator's entry is of the time that a recovery of the site says is lost
};
std::string_view MatchClassName(MatchClass match);

enum class MatchSubject : std::uint8_t {
  kNone = 0,
  kUpdate = 1,
  kCounted = 2,
  kModel = 3,
  kRecovery = 4
};
std::string_view MatchSubjectName(MatchSubject subject);

struct Match {
  MatchClass match = MatchClass::kUnexplained;
  MatchSubject subject = MatchSubject::kNone;
  PhaseKey key;
  std::string site;
  Digest digest;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> site_seq;        // the first leaf about it in the site's log
  std::optional<std::uint64_t> aggregator_seq;  // and in the aggregator's
  std::string text;                             // what differs; empty for a plain match
};

struct Reconciliation {
  std::string site;
  std::string aggregator;
  std::vector<Match> matches;  // by job, round, phase, epoch, digest

  std::uint64_t Count(MatchClass match) const;
  bool Explained() const { return Count(MatchClass::kUnexplained) == 0; }
};

// Takes the leaves of both logs, in order. Pure. Errors: kInvalidArgument: a log that does not say
// whose it is (no `agent.started`, no `aggregator.started`) or two of the same side.
StatusOr<Reconciliation> Reconcile(const std::vector<Leaf>& site_log,
                                   const std::vector<Leaf>& aggregator_log);

// The same from files. Errors: also those of ForEachLeaf.
StatusOr<Reconciliation> ReconcileFiles(const std::string& site_log,
                                        const std::string& aggregator_log);

std::string PrintReconciliation(const Reconciliation& result);
Json ReconciliationJson(const Reconciliation& result);

}  // namespace domicile::audit
