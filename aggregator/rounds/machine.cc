#include "aggregator/rounds/machine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "aggregator/rounds/internal/cohort.h"

namespace domicile::aggregator {
namespace {

using policy::Reason;
using Actions = std::vector<Action>;
using PhaseStep = CurrentPhase::Step;

// One application of Step: the state and the actions so far.
class Machine {
 public:
  Machine(JobState& state, Actions& actions) : state_(state), actions_(actions) {}

  void On(const Submitted& event);
  void On(const SiteConnected& event);
  void On(const SiteDisconnected& event);
  void On(const OfferAnswered& event);
  void On(const StartDue& event);
  void On(const PhaseDeclined& event);
  void On(const UpdateReceived& event);
  void On(const DeadlinePassed& event);
  void On(const PhaseCommitted& event);
  void On(const PhaseFailed& event);
  void On(const AggregatorStarted& event);
  void On(const Cancelled& event);
  void On(const AnswersWithdrawn& event);

 private:
  // The current phase if it is at that step and the event names it; null otherwise.
  CurrentPhase* Current(const PhaseKey& key, const Epoch& epoch, PhaseStep step);
  // What an open phase knows of a site; null if it is none or the site no participant.
  Participation* OpenParticipation(const SiteId& site);

  void TryStart();
  void TryOpenGathering();
  void Advance();
  void BeginAttempt(std::chrono::seconds waited = {});
  void Open(const internal::Cohort& cohort);
  void Reopen(std::chrono::seconds waited);
  std::chrono::seconds Deadline() const;  // what is left of it
  void Arm();
  void CloseIfAnswered();
  void Close();
  std::optional<Reason> WhyNotCommit(const std::vector<Contributor>& contributors) const;
  void FailAttempt(Reason reason);
  void End(JobStage stage, Reason reason);

  JobState& state_;
  Actions& actions_;
};

CurrentPhase* Machine::Current(const PhaseKey& key, const Epoch& epoch, PhaseStep step) {
  if (!state_.current || state_.current->key != key || state_.current->epoch != epoch ||
      state_.current->step != step) {
    return nullptr;
  }
  return &*state_.current;
}

Participation* Machine::OpenParticipation(const SiteId& site) {
  if (!state_.current || state_.current->step != PhaseStep::kOpen) {
    return nullptr;
  }
  const auto found = state_.current->participants.find(site);
  return found == state_.current->participants.end() ? nullptr : &found->second;
}

// ---- the job ----

void Machine::On(const Submitted& event) {
  if (state_.stage != JobStage::kNone) {
    return;
  }
  state_.stage = JobStage::kWaiting;
  state_.starts = event.starts;
  state_.model = event.model;
  actions_.emplace_back(ArmStart{state_.rules.start_after});
}

void Machine::On(const SiteConnected& event) {
  state_.sites[event.site].connected = true;
  // Also to a site that has answered before: it may have changed its mind, or lost the plan.
  actions_.emplace_back(OfferTo{event.site});
  const Participation* const participation = OpenParticipation(event.site);
  if (participation != nullptr && !participation->received && !participation->declined) {
    actions_.emplace_back(RepeatOpen{event.site});
  }
  TryStart();
  TryOpenGathering();
}

void Machine::On(const SiteDisconnected& event) {
  const auto found = state_.sites.find(event.site);
  if (found == state_.sites.end()) {
    return;
  }
  // No answer to an open phase: the site has until the deadline to come back.
  found->second.connected = false;
  TryStart();  // it may have been the one that was waited for
}

void Machine::On(const OfferAnswered& event) {
  if (event.answer == Answer::kNone) {
    return;
  }
  SiteRecord& record = state_.sites[event.site];
  const bool has_changed =
      record.policy != event.policy || record.organisation != event.organisation;
  record.answer = event.answer;
  record.reason = event.reason;
  record.organisation = event.organisation;
  record.min_contributors = event.min_contributors;
  record.policy = event.policy;
  if (Participation* const participation = OpenParticipation(event.site)) {
    const bool accepts = event.answer == Answer::kAccept;
    if (accepts ? has_changed || event.min_contributors > state_.current->floor
                : participation->received) {
      // The bytes cannot be taken out of the sum, nor the floor be raised: begin again.
      FailAttempt(Reason::kSuperseded);
    } else if (!accepts) {
      participation->declined = true;
      participation->reason = event.reason;
      CloseIfAnswered();
    }
  }
  TryStart();
  TryOpenGathering();
}

void Machine::On(const AnswersWithdrawn& event) {
  bool is_in_sum = false;
  bool is_answer_to_phase = false;
  for (const SiteId& site : event.sites) {
    const auto found = state_.sites.find(site);
    if (found == state_.sites.end() || found->second.answer == Answer::kNone) {
      continue;
    }
    found->second.answer = Answer::kHold;
    found->second.reason = event.reason;
    if (Participation* const participation = OpenParticipation(site)) {
      is_in_sum = is_in_sum || participation->received;
      if (!participation->received && !participation->declined) {
        participation->declined = true;
        participation->reason = event.reason;
        is_answer_to_phase = true;
      }
    }
  }
  if (is_in_sum) {
    FailAttempt(Reason::kSuperseded);
  } else if (is_answer_to_phase) {
    CloseIfAnswered();
  }
  TryStart();
  TryOpenGathering();
}

void Machine::On(const StartDue& /*event*/) {
  state_.start_due = true;
  TryStart();
}

void Machine::On(const Cancelled& /*event*/) {
  if (state_.current && state_.current->step != PhaseStep::kGathering) {
    actions_.emplace_back(
        AbandonPhase{state_.current->key, state_.current->epoch, Reason::kCancelled});
  }
  End(JobStage::kCancelled, Reason::kCancelled);
}

void Machine::On(const AggregatorStarted& event) {
  if (event.starts <= state_.starts) {
    return;
  }
  state_.starts = event.starts;
  state_.next_attempt = 1;
  for (auto& [site, record] : state_.sites) {
    record.connected = false;
  }
  if (state_.stage == JobStage::kWaiting && !state_.start_due) {
    actions_.emplace_back(ArmStart{state_.rules.start_after});
  } else if (state_.stage == JobStage::kRunning) {
    // What had passed stays so: however often the aggregator starts, a wait is no longer than
    // planned.
    const std::chrono::seconds waited =
        std::clamp(event.waited, std::chrono::seconds(0), state_.rules.deadline);
    if (state_.current->step == PhaseStep::kGathering) {
      BeginAttempt(waited);
    } else {
      Reopen(waited);
    }
  }
}

void Machine::TryStart() {
  if (state_.stage != JobStage::kWaiting) {
    return;
  }
  const bool is_answer_due =
      std::any_of(state_.sites.begin(), state_.sites.end(), [](const auto& entry) {
        const SiteRecord& record = entry.second;
        return record.connected &&
               (record.answer == Answer::kNone || record.answer == Answer::kHold);
      });
  if ((is_answer_due && !state_.start_due) ||
      !internal::MakeCohort(state_, internal::ConnectedAccepted(state_))) {
    return;
  }
  state_.stage = JobStage::kRunning;
  Advance();
}

void Machine::End(JobStage stage, Reason reason) {
  state_.stage = stage;
  state_.reason = reason;
  state_.current.reset();
  actions_.emplace_back(EndJob{stage, reason});
}

// ---- opening ----

void Machine::Advance() {
  state_.known_digests.clear();
  state_.failed_attempts = 0;
  state_.next_attempt = 1;
  if (!NextPhase(state_)) {
    End(JobStage::kDone, Reason::kNone);
    return;
  }
  BeginAttempt();
}

void Machine::BeginAttempt(std::chrono::seconds waited) {
  const PhaseKey key = *NextPhase(state_);
  state_.current = CurrentPhase{.key = key,
                                .epoch = {.starts = state_.starts, .attempt = state_.next_attempt},
                                .model = state_.model,
                                .waited = waited};
  ++state_.next_attempt;
  if (const auto cohort = internal::MakeCohort(state_, internal::Candidates(state_, key.phase))) {
    Open(*cohort);
  } else {
    Arm();
  }
}

void Machine::TryOpenGathering() {
  if (!state_.current || state_.current->step != PhaseStep::kGathering) {
    return;
  }
  // A new epoch: a deadline of the waiting that is on its way must not close the phase.
  if (internal::MakeCohort(state_, internal::Candidates(state_, state_.current->key.phase))) {
    BeginAttempt();
  }
}

void Machine::Open(const internal::Cohort& cohort) {
  CurrentPhase& current = *state_.current;
  current.step = PhaseStep::kOpen;
  current.floor = cohort.floor;
  state_.cohort = {cohort.sites.begin(), cohort.sites.end()};
  for (const SiteId& site : cohort.sites) {
    current.participants[site] = {};
    state_.sites[site].reason = Reason::kNone;
  }
  for (const SiteId& site : cohort.surplus) {
    state_.sites[site].reason = Reason::kBusy;
  }
  for (const SiteId& site : cohort.left_out) {
    state_.sites[site].reason = Reason::kMinContributors;
  }
  actions_.emplace_back(OpenPhase{current.key, current.epoch, cohort.sites, current.floor,
                                  current.model, Deadline()});
  Arm();
}

// After a restart: the same phase, participants and floor, with an empty sum.
void Machine::Reopen(std::chrono::seconds waited) {
  CurrentPhase& current = *state_.current;
  current.step = PhaseStep::kOpen;
  current.waited = waited;
  current.epoch = {.starts = state_.starts, .attempt = state_.next_attempt};
  ++state_.next_attempt;
  std::vector<SiteId> sites;
  for (auto& [site, participation] : current.participants) {
    SiteRecord& record = state_.sites.at(site);
    participation = {};
    if (record.answer != Answer::kAccept) {  // withdrew before the restart
      participation.declined = true;
      participation.reason = record.reason;
    } else {
      record.reason = Reason::kNone;  // it is asked again
    }
    sites.push_back(site);
  }
  actions_.emplace_back(OpenPhase{current.key, current.epoch, std::move(sites), current.floor,
                                  current.model, Deadline()});
  Arm();
  CloseIfAnswered();
}

std::chrono::seconds Machine::Deadline() const {
  return state_.rules.deadline - state_.current->waited;
}

void Machine::Arm() {
  actions_.emplace_back(ArmDeadline{state_.current->key, state_.current->epoch, Deadline()});
}

// ---- collecting ----

void Machine::On(const PhaseDeclined& event) {
  if (Current(event.key, event.epoch, PhaseStep::kOpen) == nullptr) {
    return;
  }
  Participation* const participation = OpenParticipation(event.site);
  if (participation == nullptr || participation->received) {
    return;
  }
  participation->declined = true;
  participation->reason = event.reason;
  state_.sites[event.site].reason = event.reason;  // people still see it when the phase is over
  CloseIfAnswered();
}

void Machine::On(const UpdateReceived& event) {
  if (Current(event.key, event.epoch, PhaseStep::kOpen) == nullptr || event.weight < 1 ||
      event.digest.IsZero()) {
    return;
  }
  Participation* const participation = OpenParticipation(event.site);
  if (participation == nullptr || participation->received) {
    return;
  }
  // INVARIANT: one digest per site in a phase, over all epochs.
  const auto [known, is_new] = state_.known_digests.emplace(event.site, event.digest);
  if (!is_new && known->second != event.digest) {
    return;
  }
  *participation = {
      .received = true, .digest = event.digest, .weight = event.weight, .leaf = event.leaf};
  CloseIfAnswered();
}

void Machine::On(const DeadlinePassed& event) {
  if (Current(event.key, event.epoch, PhaseStep::kGathering) != nullptr) {
    FailAttempt(Reason::kTooFewSites);
  } else if (Current(event.key, event.epoch, PhaseStep::kOpen) != nullptr) {
    Close();
  }
}

// ---- closing ----

void Machine::CloseIfAnswered() {
  const auto& participants = state_.current->participants;
  if (std::all_of(participants.begin(), participants.end(), [](const auto& entry) {
        return entry.second.received || entry.second.declined;
      })) {
    Close();
  }
}

void Machine::Close() {
  CurrentPhase& current = *state_.current;
  std::vector<Contributor> contributors;
  for (const auto& [site, participation] : current.participants) {
    if (participation.received) {
      contributors.push_back(
          {site, participation.digest, participation.weight, participation.leaf});
    }
  }
  if (const std::optional<Reason> reason = WhyNotCommit(contributors)) {
    FailAttempt(*reason);
    return;
  }
  current.step = PhaseStep::kClosing;
  actions_.emplace_back(CommitPhase{current.key, current.epoch, std::move(contributors)});
}

std::optional<Reason> Machine::WhyNotCommit(const std::vector<Contributor>& contributors) const {
  const CurrentPhase& current = *state_.current;
  // A site without examples adds nothing, so leaving it out tells nobody anything about it.
  const auto no_examples = static_cast<std::size_t>(std::count_if(
      current.participants.begin(), current.participants.end(), [](const auto& entry) {
        return entry.second.declined && entry.second.reason == Reason::kNoExamples;
      }));
  if (no_examples == current.participants.size()) {
    return Reason::kNoExamplesAnywhere;
  }
  if (current.key.phase == PhaseKind::kStatistics &&
      contributors.size() + no_examples != current.participants.size()) {
    return Reason::kPhaseIncomplete;
  }
  std::vector<SiteId> sites;
  sites.reserve(contributors.size());
  for (const Contributor& contributor : contributors) {
    sites.push_back(contributor.site);
  }
  if (CountOrganisations(state_, sites) < current.floor) {
    return Reason::kBelowFloor;
  }
  return std::nullopt;
}

void Machine::On(const PhaseCommitted& event) {
  const CurrentPhase* const current = Current(event.key, event.epoch, PhaseStep::kClosing);
  if (current == nullptr) {
    return;
  }
  std::vector<Contributor> expected;
  for (const auto& [site, participation] : current->participants) {
    if (participation.received) {
      expected.push_back({site, participation.digest, participation.weight, participation.leaf});
    }
  }
  if (event.contributors != expected) {
    return;
  }
  if (!event.model.IsZero()) {
    state_.model = event.model;
  }
  ++state_.phases_in_round;
  if (state_.phases_in_round == state_.rules.rounds[state_.rounds_committed].size()) {
    state_.phases_in_round = 0;
    ++state_.rounds_committed;
  }
  state_.current.reset();
  Advance();
}

void Machine::On(const PhaseFailed& event) {
  if (Current(event.key, event.epoch, PhaseStep::kClosing) != nullptr) {
    FailAttempt(event.reason);
  }
}

void Machine::FailAttempt(Reason reason) {
  if (state_.current->step != PhaseStep::kGathering) {
    actions_.emplace_back(AbandonPhase{state_.current->key, state_.current->epoch, reason});
  }
  state_.last_failure = reason;
  ++state_.failed_attempts;
  if (state_.failed_attempts >= state_.rules.attempts) {
    End(JobStage::kFailed, reason);
  } else {
    BeginAttempt();
  }
}

}  // namespace

std::vector<Action> Step(JobState& state, const Event& event) {
  Actions actions;
  const bool is_submission = std::holds_alternative<Submitted>(event);
  if (HasEnded(state.stage) || (state.stage == JobStage::kNone && !is_submission)) {
    return actions;
  }
  Machine machine(state, actions);
  std::visit([&](const auto& what) { machine.On(what); }, event);
  return actions;
}

}  // namespace domicile::aggregator
