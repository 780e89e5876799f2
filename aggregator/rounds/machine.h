// The round machine: what happens next in a job. The only place that decides when a phase opens,
// commits or is abandoned. Pure: no clock, no I/O, no policy. Page: docs/formats/round.md.
//
// The coordinator stores each event with the actions' log leaves in one transaction, and then
// carries the actions out. Replaying the stored events over JobState(rules) gives the same state.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "aggregator/rounds/state.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "policy/reason.h"

namespace domicile::aggregator {

// ---- events: what happened ----

struct Submitted {
  std::uint64_t starts = 0;  // of the aggregator now, from 1
  Digest model = {};         // the first
  friend bool operator==(const Submitted&, const Submitted&) = default;
};
// A site that has the job's dataset alias opened its control stream. Also one that is connected
// already when the job is submitted.
struct SiteConnected {
  SiteId site = {};
  friend bool operator==(const SiteConnected&, const SiteConnected&) = default;
};
struct SiteDisconnected {
  SiteId site = {};
  friend bool operator==(const SiteDisconnected&, const SiteDisconnected&) = default;
};
// Also what the coordinator reports for a site that is revoked: a decline with the reason.
struct OfferAnswered {
  SiteId site = {};
  OrganisationId organisation = {};  // from the roster
  Answer answer = Answer::kNone;
  policy::Reason reason = policy::Reason::kNone;  // unless accepted
  std::uint32_t min_contributors = 0;
  Digest policy = {};  // effective policy, computed by both ends
  friend bool operator==(const OfferAnswered&, const OfferAnswered&) = default;
};
// What these sites answered was about policies that are no longer in force: until they answer again
// they hold. Of one change all sites are told at once, so that it costs one attempt at most.
struct AnswersWithdrawn {
  std::vector<SiteId> sites = {};  // those that have not answered are left alone
  policy::Reason reason = policy::Reason::kNone;
  friend bool operator==(const AnswersWithdrawn&, const AnswersWithdrawn&) = default;
};
// rules.start_after has passed since ArmStart.
struct StartDue {
  friend bool operator==(const StartDue&, const StartDue&) = default;
};
// A participant cannot take part (PhaseReply). An update without examples is reported as this, with
// kNoExamples: it never counts.
struct PhaseDeclined {
  SiteId site = {};
  PhaseKey key = {};
  Epoch epoch = {};
  policy::Reason reason = policy::Reason::kNone;
  friend bool operator==(const PhaseDeclined&, const PhaseDeclined&) = default;
};
// An update that CheckSubmission accepted has passed every other check and is about to be folded.
struct UpdateReceived {
  SiteId site = {};
  PhaseKey key = {};
  Epoch epoch = {};
  Digest digest = {};
  std::int64_t weight = 0;  // at least 1
  std::uint64_t leaf = 0;   // index of `ingress.received`
  friend bool operator==(const UpdateReceived&, const UpdateReceived&) = default;
};
// The time of ArmDeadline is over. Ignored unless it names the current epoch.
struct DeadlinePassed {
  PhaseKey key = {};
  Epoch epoch = {};
  friend bool operator==(const DeadlinePassed&, const DeadlinePassed&) = default;
};
// The result of CommitPhase is durable, or becomes so in the transaction that stores this event.
// Contributors as the action gave them. Step gives no action for it exactly if it does not fit any
// more (the job was cancelled meanwhile): then the result must not be published.
struct PhaseCommitted {
  PhaseKey key = {};
  Epoch epoch = {};
  std::vector<Contributor> contributors = {};
  Digest model = {};  // the new one; zero if the phase makes none (evaluate)
  friend bool operator==(const PhaseCommitted&, const PhaseCommitted&) = default;
};
// CommitPhase gave no result (kResultNotFinite, kNormalisation, kNoExamplesAnywhere, ...).
struct PhaseFailed {
  PhaseKey key = {};
  Epoch epoch = {};
  policy::Reason reason = policy::Reason::kNone;
  friend bool operator==(const PhaseFailed&, const PhaseFailed&) = default;
};
// The aggregator started again: nobody is connected and the sum is gone. `waited`: how much of the
// deadline that was armed last had passed before.
struct AggregatorStarted {
  std::uint64_t starts = 0;
  std::chrono::seconds waited{0};
  friend bool operator==(const AggregatorStarted&, const AggregatorStarted&) = default;
};
struct Cancelled {
  friend bool operator==(const Cancelled&, const Cancelled&) = default;
};

using Event = std::variant<Submitted, SiteConnected, SiteDisconnected, OfferAnswered, StartDue,
                           PhaseDeclined, UpdateReceived, DeadlinePassed, PhaseCommitted,
                           PhaseFailed, AggregatorStarted, Cancelled, AnswersWithdrawn>;

// ---- actions: what to do about it, in order ----

// Send the job offer.
struct OfferTo {
  SiteId site = {};
  friend bool operator==(const OfferTo&, const OfferTo&) = default;
};
// Report StartDue after this long.
struct ArmStart {
  std::chrono::seconds after{0};
  friend bool operator==(const ArmStart&, const ArmStart&) = default;
};
// A phase begins, with an empty sum: log `phase.opened`, tell every participant that is connected.
struct OpenPhase {
  PhaseKey key = {};
  Epoch epoch = {};
  std::vector<SiteId> participants = {};  // sorted
  std::uint32_t floor = 0;                // fewest organisations it may commit with
  Digest model = {};
  std::chrono::seconds deadline{0};  // that it has, of which a restart takes what had passed
  friend bool operator==(const OpenPhase&, const OpenPhase&) = default;
};
// Tell a participant, which has just connected and has not answered, of the phase that is open.
struct RepeatOpen {
  SiteId site = {};
  friend bool operator==(const RepeatOpen&, const RepeatOpen&) = default;
};
// Report DeadlinePassed{key, epoch} after this long. Replaces an earlier one of this job.
struct ArmDeadline {
  PhaseKey key = {};
  Epoch epoch = {};
  std::chrono::seconds after{0};
  friend bool operator==(const ArmDeadline&, const ArmDeadline&) = default;
};
// Make the result of the sum durable, then report PhaseCommitted, or PhaseFailed.
struct CommitPhase {
  PhaseKey key = {};
  Epoch epoch = {};
  std::vector<Contributor> contributors = {};  // sorted by site
  friend bool operator==(const CommitPhase&, const CommitPhase&) = default;
};
// Drop the sum: nothing of this attempt is released. Log `phase.abandoned`, tell the participants.
struct AbandonPhase {
  PhaseKey key = {};
  Epoch epoch = {};
  policy::Reason reason = policy::Reason::kNone;
  friend bool operator==(const AbandonPhase&, const AbandonPhase&) = default;
};
struct EndJob {
  JobStage stage = JobStage::kNone;
  policy::Reason reason = policy::Reason::kNone;  // kNone when done
  friend bool operator==(const EndJob&, const EndJob&) = default;
};

using Action = std::variant<OfferTo, ArmStart, OpenPhase, RepeatOpen, ArmDeadline, CommitPhase,
                            AbandonPhase, EndJob>;

// ---- the machine ----

// Applies one event. An event that does not fit (of another epoch, of a job that has ended, from a
// site that is no participant) changes nothing and gives no action.
std::vector<Action> Step(JobState& state, const Event& event);

}  // namespace domicile::aggregator
