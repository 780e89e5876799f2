// A plan in the words of the policy engine: what both gates tell `policy::Decide` about a job.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "contracts/plan.h"
#include "contracts/roster.h"
#include "policy/engine/transfer.h"
#include "policy/language/policy.h"

namespace domicile::contracts {

// The numbers a plan asks for. Pure.
policy::PlanFacts FactsOf(const Plan& plan);

// kNone if the purpose is not a word of the policy vocabulary: Decide refuses it.
policy::Purpose PurposeOf(const Plan& plan);

policy::View ViewOf(const Plan& plan);

// What an update of this phase holds; and all that a job will ask for, the model's way back
// included.
std::vector<policy::UpdateKind> KindsOf(const Plan& plan, PhaseKind phase);
std::vector<policy::UpdateKind> AllKindsOf(const Plan& plan);

// How many scalar metrics an update of this phase holds at most (histogram bins are none).
std::uint64_t ScalarMetrics(PhaseKind phase);

// What an aggregator promises about what it is given: what its policy asks of everyone, itself
// first.
policy::RetentionPromise PromiseOf(const policy::Policy& aggregator);

// How far another's clock is off this one's, from what it said (Hello, Welcome). Empty if it said
// nothing that can be a time.
std::optional<std::chrono::milliseconds> SkewOf(std::uint64_t sent_unix_ms, WallTime now);
// This clock in the same words.
std::uint64_t UnixMilliseconds(WallTime now);

// A party of a transfer, from its roster entry. The place of a site or an aggregator is proved by
// its certificate, which is refused if it differs.
policy::Party PartyOf(const RosterEntry& entry);

// The parties a plan's `recipients` stand for: `sites` is every site of the roster, `operator`
// every operator (at the place of `aggregator`, where operators work), any other word the party of
// that name. A word that names nobody gives a party without a place, which Decide refuses.
std::vector<policy::Party> RecipientsOf(const Plan& plan, const Roster& roster,
                                        const RosterEntry& aggregator);

// What either end can say of a crossing of this job between these two, from plan and roster alone;
// the caller adds what it alone knows.
policy::Transfer TransferOf(policy::DecisionPoint point, const Plan& plan, const RosterEntry& site,
                            const RosterEntry& aggregator, const Roster& roster, WallTime now);
// The two have just connected: may they work together at all?
policy::Transfer EnrolmentOf(const RosterEntry& site, const RosterEntry& aggregator, WallTime now);

// An operator works in the aggregator's office: its place and control are those of the aggregator.
// No certificate says so: it is declared.
policy::Party OperatorParty(std::string_view name, const RosterEntry& aggregator);

}  // namespace domicile::contracts
