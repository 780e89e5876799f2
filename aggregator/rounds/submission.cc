#include "aggregator/rounds/submission.h"

#include <algorithm>
#include <utility>

namespace domicile::aggregator {
namespace {

using policy::Reason;
using PhaseStep = CurrentPhase::Step;

// A phase's place in the job; a phase that its round does not have comes after those it has.
std::pair<RoundNumber, std::ptrdiff_t> PlaceOf(const JobRules& rules, const PhaseKey& key) {
  if (key.round > rules.rounds.size()) {
    return {key.round, 0};
  }
  const std::vector<PhaseKind>& phases = rules.rounds[key.round - 1];
  return {key.round, std::find(phases.begin(), phases.end(), key.phase) - phases.begin()};
}

// The first reason that applies, or the verdict, for a site that is in the job.
SubmissionAnswer Judge(const JobState& state, const SiteId& site, const SubmissionHeader& header) {
  const auto refuse = [](Reason reason) {
    return SubmissionAnswer{.verdict = Verdict::kRefuse, .reason = reason};
  };
  if (state.stage == JobStage::kCancelled) {
    return refuse(Reason::kCancelled);
  }
  if (header.key.round == 0 || header.key.phase == PhaseKind::kNone) {
    return refuse(Reason::kRoundMissing);
  }
  if (HasEnded(state.stage)) {
    return refuse(Reason::kStaleRound);
  }
  if (!state.current) {
    return refuse(Reason::kRoundNotOpen);
  }
  const CurrentPhase& current = *state.current;
  const auto place = PlaceOf(state.rules, header.key);
  const auto open_place = PlaceOf(state.rules, current.key);
  if (place < open_place) {
    return refuse(Reason::kStaleRound);
  }
  if (place > open_place || current.step == PhaseStep::kGathering) {
    return refuse(Reason::kRoundNotOpen);
  }
  const auto participant = current.participants.find(site);
  if (participant == current.participants.end()) {
    return refuse(Reason::kNotAParticipant);
  }
  if (header.base_model != current.model) {
    return refuse(Reason::kWrongBaseModel);
  }
  if (header.epoch != current.epoch) {
    return refuse(Reason::kWrongEpoch);
  }
  const auto known = state.known_digests.find(site);
  if (known != state.known_digests.end() && known->second != header.digest) {
    return refuse(Reason::kAlreadyReceived);
  }
  if (participant->second.received) {
    return {.verdict = Verdict::kRepeatReceipt};
  }
  if (current.step == PhaseStep::kClosing) {
    return refuse(Reason::kDeadline);
  }
  return {.verdict = Verdict::kAccept};
}

}  // namespace

SubmissionAnswer CheckSubmission(const JobState& state, const SiteId& site,
                                 const SubmissionHeader& header) {
  const auto record = state.sites.find(site);
  if (record == state.sites.end() || record->second.answer != Answer::kAccept) {
    return {.verdict = Verdict::kRefuse, .reason = Reason::kNotAParticipant};
  }
  SubmissionAnswer answer = Judge(state, site, header);
  if (state.current && state.current->step != PhaseStep::kGathering) {
    answer.open_key = state.current->key;
    answer.open_epoch = state.current->epoch;
    answer.open_model = state.current->model;
  }
  return answer;
}

}  // namespace domicile::aggregator
