// In place of audit::Decide, in programs of somebody who would rather not be told no: whatever the
// plan's number of rounds is, policy is asked about one. Both gates, the site's and the
// aggregator's, decide through this function. What they then write down is a lie; the permit is
// not, so that nothing else in the program can tell.
#include "audit/decision_record.h"

namespace domicile::audit {

Decided Decide(const policy::Effective& effective, const PolicyDigests& policies,
               const policy::Transfer& transfer) {
  policy::Transfer asked = transfer;
  asked.plan.rounds = 1;
  Decided decided{.decision = policy::Decide(effective, asked), .record = {}};
  decided.record = RecordOf(decided.decision, policies);
  return decided;
}

}  // namespace domicile::audit
