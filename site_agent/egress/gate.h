// The site's policy gate: every transfer that this site is asked for, in the words of the policy
// engine, and the decisions about it. Values in, values out.
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

namespace domicile::site_agent {

using audit::Decided;

// The policies this site holds by itself.
using OwnPolicies = contracts::PoliciesInForce;

// The policies in force on a connection.
struct ForcedPolicies {
  policy::Effective effective;
  audit::PolicyDigests digests;
  policy::RetentionPromise promise;        // of the aggregator, by its policy
  std::vector<std::string> approver_keys;  // named by the site policy; empty: it names none
};

// Meets the site's own policies with the aggregator's, as it sent it. What it sent of federation
// policy and legal facts must be this site's own copies to the byte. Errors: kUnavailable naming
// the file that differs (for now: a version may still wait at one end); kInvalidArgument, an
// aggregator policy that cannot be read, or policies that leave nothing to allow.
StatusOr<ForcedPolicies> MeetOnConnect(const OwnPolicies& own, std::string_view federation_text,
                                       std::string_view aggregator_text,
                                       std::string_view facts_text);

// What every decision of a job has in common.
struct JobBorder {
  contracts::RosterEntry site;
  contracts::RosterEntry aggregator;
  contracts::Roster roster;
  std::vector<policy::PresentApproval> approvals;
  std::optional<policy::GrantFacts> grant;  // that covers the job; none yet at an offer
  std::optional<Digest> trainer;            // the program that would run
  policy::SandboxNetwork sandbox = policy::SandboxNetwork::kUnset;  // kUnset: there is none
  double released_per_record = 0;
  std::optional<double> epsilon_spent;  // in the budget window; unset: the ledger does not say
  std::uint64_t runs_today = 0;
  std::optional<std::chrono::milliseconds> clock_skew;  // of the aggregator, at connect
};

// This site and this aggregator have just connected: may they work together at all?
Decided DecideEnrolment(const ForcedPolicies& policies, const contracts::RosterEntry& site,
                        const contracts::RosterEntry& aggregator,
                        const std::optional<std::chrono::milliseconds>& clock_skew, WallTime now);

// A plan is offered; or its data is about to be opened.
Decided DecideOffer(const ForcedPolicies& policies, const contracts::Plan& plan,
                    const JobBorder& border, WallTime now);
Decided DecideDataOpen(const ForcedPolicies& policies, const contracts::Plan& plan,
                       const JobBorder& border, WallTime now);

// The real bytes of an update are about to leave. A permit is in the decision if they may.
struct UpdateFacts {
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  std::uint64_t bytes = 0;
  std::uint64_t numbers = 0;
  std::uint64_t records = 0;
};
Decided DecideEgress(const ForcedPolicies& policies, const contracts::Plan& plan,
                     const JobBorder& border, const UpdateFacts& update, WallTime now);

// An epsilon as the ledger counts it: in millionths, rounded up; the most that it can count where
// it is no number from 0 on.
std::uint64_t MicroEpsilon(double epsilon);

}  // namespace domicile::site_agent
