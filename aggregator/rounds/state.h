// What the aggregator knows about one job: values only. The rules that change them are in
// machine.h, the page is docs/formats/round.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "contracts/plan.h"
#include "policy/reason.h"

namespace domicile::aggregator {

using contracts::PhaseKind;

// What a job's plan says to the machine. Fixed for the life of the job.
struct JobRules {
  std::vector<std::vector<PhaseKind>> rounds =
      {};                               // [round - 1]: its phases, in order, at least one
  std::uint32_t quorum = 0;             // fewest organisations in any committed phase
  std::uint32_t max_sites = 0;          // most participants of a phase; what the grid has room for
  std::uint32_t attempts = 0;           // at one phase before the job fails, at least 1
  std::chrono::seconds deadline{0};     // of a phase, and of waiting for sites to open one
  std::chrono::seconds start_after{0};  // wait for more sites than the quorum this long
  friend bool operator==(const JobRules&, const JobRules&) = default;
};
JobRules RulesFromPlan(const contracts::Plan& plan);

// Numbers as in domicile.v1.JobState. Stored: append, never renumber.
enum class JobStage : std::uint8_t {
  kNone = 0,     // not submitted yet
  kWaiting = 1,  // for answers to the offer
  kRunning = 2,
  kDone = 3,  // every phase of every round is committed
  kFailed = 4,
  kCancelled = 5,
};
std::string_view StageName(JobStage stage);  // "waiting", ...
inline bool HasEnded(JobStage stage) { return stage >= JobStage::kDone; }

// Numbers as in domicile.v1.Answer. Stored: append, never renumber.
enum class Answer : std::uint8_t { kNone = 0, kAccept = 1, kDecline = 2, kHold = 3 };

// One phase of one round; ordered by round, then by place in the round.
struct PhaseKey {
  RoundNumber round = 0;
  PhaseKind phase = PhaseKind::kNone;
  friend bool operator==(const PhaseKey&, const PhaseKey&) = default;
};

// A site that has been connected while this job was there and has the dataset.
struct SiteRecord {
  bool connected = false;
  Answer answer = Answer::kNone;  // its last answer to the offer
  // Why it declined the offer or holds, or was left out, or declined the last phase it was in.
  policy::Reason reason = policy::Reason::kNone;
  OrganisationId organisation = {};
  std::uint32_t min_contributors = 0;  // its minimum for any released sum
  Digest policy = {};                  // effective policy it accepted under
  friend bool operator==(const SiteRecord&, const SiteRecord&) = default;
};

// What a participant of the open phase has done in this epoch.
struct Participation {
  bool received = false;
  bool declined = false;
  policy::Reason reason = policy::Reason::kNone;  // of the decline
  Digest digest = {};                             // of the update, once received
  std::int64_t weight = 0;
  std::uint64_t leaf = 0;  // index of `ingress.received`
  friend bool operator==(const Participation&, const Participation&) = default;
};

// One contributor of a sum, as in the `phase.committed` leaf.
struct Contributor {
  SiteId site = {};
  Digest digest = {};
  std::int64_t weight = 0;
  std::uint64_t leaf = 0;
  friend bool operator==(const Contributor&, const Contributor&) = default;
};

// The phase that is being worked on.
struct CurrentPhase {
  enum class Step : std::uint8_t {
    kGathering = 1,  // not enough sites are connected to open it
    kOpen = 2,       // updates are taken
    kClosing = 3,    // CommitPhase was given; PhaseCommitted or PhaseFailed follows
  };
  Step step = Step::kGathering;
  PhaseKey key = {};
  Epoch epoch = {};
  Digest model = {};               // that participants start from
  std::uint32_t floor = 0;         // organisations; fixed at open
  std::chrono::seconds waited{0};  // of the deadline, before the aggregator started again
  std::map<SiteId, Participation> participants = {};
  friend bool operator==(const CurrentPhase&, const CurrentPhase&) = default;
};

// The whole state of a job. The events of its life rebuild it.
struct JobState {
  explicit JobState(JobRules job_rules) : rules(std::move(job_rules)) {}

  JobRules rules;
  JobStage stage = JobStage::kNone;
  policy::Reason reason = policy::Reason::kNone;        // why it failed or was cancelled
  policy::Reason last_failure = policy::Reason::kNone;  // of the last abandoned attempt
  std::uint64_t starts = 0;                             // of the aggregator, as last told
  bool start_due = false;                               // start_after has passed
  Digest model = {};                                    // the last committed one, or the first
  RoundNumber rounds_committed = 0;                     // whole rounds
  std::uint32_t phases_in_round = 0;                    // committed phases of the round after those
  std::uint32_t failed_attempts = 0;  // at the current phase; a restart does not reset it
  std::uint32_t next_attempt = 1;     // of epochs at the current phase in this start
  std::map<SiteId, SiteRecord> sites;
  std::set<SiteId> cohort;              // of the current round, once made
  std::optional<CurrentPhase> current;  // set while running
  // Digest of the one update that each site may have counted in the current phase, over all epochs.
  std::map<SiteId, Digest> known_digests;

  friend bool operator==(const JobState&, const JobState&) = default;
};

// The phase that is current or comes next; empty after the last.
std::optional<PhaseKey> NextPhase(const JobState& state);

// How many organisations run these sites, each of which must be in `state.sites`. What floors
// count.
std::uint32_t CountOrganisations(const JobState& state, const std::vector<SiteId>& sites);

}  // namespace domicile::aggregator
