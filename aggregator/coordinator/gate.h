// The aggregator's policy gate: the transfers it is asked about, in the words of the policy engine,
// and the decisions about them. Values in, values out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/decision_record.h"
#include "audit/records.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/in_force/policies.h"
#include "contracts/plan.h"
#include "contracts/roster.h"
#include "policy/engine/meet.h"
#include "policy/language/facts.h"
#include "policy/language/policy.h"

namespace domicile::aggregator {

using audit::Decided;

// The policies and facts of the aggregator's side.
using OwnPolicies = contracts::PoliciesInForce;

// What one site allows, computed from its statement.
struct SitePolicy {
  policy::Effective effective;
  audit::PolicyDigests digests;
  policy::RetentionPromise promise;  // of this aggregator, by its policy
};

// Errors: kInvalidArgument, a statement that cannot be read; kPermissionDenied, one that speaks for
// another jurisdiction than the roster says.
StatusOr<SitePolicy> MeetStatement(const OwnPolicies& own, std::string_view statement,
                                   const contracts::RosterEntry& site);

// The digests of the aggregator's own side alone, as leaves of no site state them.
audit::PolicyDigests OwnDigests(const OwnPolicies& own);

// Who gives, who gets, and where the aggregator itself stands.
struct Border {
  contracts::RosterEntry site;        // whose records are behind it
  contracts::RosterEntry aggregator;  // this aggregator
  contracts::Roster roster;
  std::optional<std::chrono::milliseconds> clock_skew;  // of the site, when it connected
};

// This site has just connected: may it and this aggregator work together at all?
Decided DecideEnrolment(const SitePolicy& policy, const Border& border, WallTime now);

// An update of `bytes` and `numbers` has arrived.
Decided DecideIngress(const SitePolicy& policy, const contracts::Plan& plan,
                      contracts::PhaseKind phase, const Border& border, std::uint64_t bytes,
                      std::uint64_t numbers, WallTime now);

// Who is behind a sum, one entry a site.
using Contributors = std::vector<policy::Contributor>;

// A sum of these contributors becomes a model (or metrics).
Decided DecideRelease(const SitePolicy& policy, const contracts::Plan& plan, const Border& border,
                      const Contributors& contributors, WallTime now);

// A model that holds this site's contribution goes to a site, or to a person.
Decided DecideModelTo(const SitePolicy& policy, const contracts::Plan& plan, const Border& border,
                      const policy::Party& recipient, const Contributors& contributors,
                      WallTime now);

// A person looks at sums that this site's metrics are in.
Decided DecideView(const SitePolicy& policy, const contracts::Plan& plan, const Border& border,
                   const policy::Party& person, const Contributors& contributors, WallTime now);

}  // namespace domicile::aggregator
