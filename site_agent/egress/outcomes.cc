// Openings and outcomes: believed only as verified leaves of the aggregator's log.
#include <algorithm>
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "crypto/sha256.h"
#include "site_agent/egress/agent.h"
#include "site_agent/egress/outbox.h"
#include "site_agent/egress/wire_words.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// Distinct organisations of the participants that this site's roster knows: the others do not count
// toward anybody's minimum.
std::size_t KnownOrganisations(const contracts::Roster& roster, const std::vector<SiteId>& sites) {
  std::set<std::string> organisations;
  for (const SiteId& site : sites) {
    if (const contracts::RosterEntry* entry = roster.Find(crypto::Role::kSite, site.text())) {
      organisations.insert(entry->organisation);
    }
  }
  return organisations.size();
}

// Whether this site takes part in a phase that was opened as the log says.
Reason CheckOpening(const OpenedPhase& phase, const audit::PhaseOpened& opened, const JobRow& job,
                    const Terms& terms) {
  if (phase.epoch.starts != terms.starts) {
    return Reason::kEpochTooSmall;
  }
  const StatusOr<contracts::Plan> plan = contracts::PlanFromText(job.plan);
  if (!plan.ok()) {
    return Reason::kMalformed;
  }
  // What was approved is the plan: no evaluation before the last round, no round after it.
  const std::vector<contracts::PhaseKind> phases = plan->Phases(phase.id.round);
  if (std::find(phases.begin(), phases.end(), phase.id.phase) == phases.end()) {
    return Reason::kRoundMissing;
  }
  const std::uint32_t minimum = terms.policies.effective.MinContributors(plan->dataset);
  return opened.floor < minimum || KnownOrganisations(terms.roster, opened.participants) < minimum
             ? Reason::kMinContributors
             : Reason::kNone;
}

}  // namespace

Status Agent::TakeOpening(const v1::OpenPhase& open, Connection& connection) {
  const Terms& terms = connection.terms;
  OpenedPhase phase;
  ASSIGN_OR_RETURN(phase.id, PhaseFrom(open.phase()));
  phase.epoch = EpochFrom(open.epoch());
  ASSIGN_OR_RETURN(phase.model, DigestFromBytes(AsBytes(open.model().digest())));
  phase.model_bytes = open.model().size_bytes();
  phase.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(open.deadline_seconds());
  ASSIGN_OR_RETURN(const audit::CheckedLeaf leaf,
                   CheckWireLeaf(open.opening(), terms.aggregator_log));
  ASSIGN_OR_RETURN(const audit::PhaseOpened opened, audit::ReadPhaseOpened(leaf.leaf.event));
  phase.participants = opened.participants;
  ASSIGN_OR_RETURN(const std::optional<JobRow> job,
                   books_->With([&](SiteStore& store) { return store.FindJob(phase.id.job); }));
  if (job && (opened.key != LogKey(phase.id, phase.epoch) || opened.model != phase.model ||
              opened.floor != open.floor() || opened.plan != crypto::Sha256(AsBytes(job->plan)) ||
              std::find(opened.participants.begin(), opened.participants.end(), site_->id) ==
                  opened.participants.end())) {
    // Said one thing and logged another: what was logged is what an auditor will see.
    return Error(StatusCode::kDataLoss,
                 "the aggregator opened a phase that its own log describes otherwise");
  }
  ASSIGN_OR_RETURN(const Reason closed,
                   books_->With([&](SiteStore& store) { return store.WhyClosed(phase.id.job); }));
  const Reason reason = closed != Reason::kNone ? closed
                        : job                   ? CheckOpening(phase, opened, *job, terms)
                                                : Reason::kJobUnknown;
  if (reason == Reason::kNone) {
    runner_->Begin(std::move(phase));
    return OkStatus();
  }
  LogWarning("round " + std::to_string(phase.id.round) + " of job `" + phase.id.job.text() +
             "` refused: " + std::string(policy::Code(reason)));
  return connection.control->Send(DeclinePhase(phase.id, phase.epoch, reason));
}

Status Agent::TakeOutcome(const v1::PhaseOutcome& outcome, Connection& connection) {
  ASSIGN_OR_RETURN(const PhaseId id, PhaseFrom(outcome.phase()));
  ASSIGN_OR_RETURN(const audit::CheckedLeaf leaf,
                   CheckWireLeaf(outcome.leaf(), connection.terms.aggregator_log));
  if (outcome.outcome() == v1::OUTCOME_COMMITTED) {
    ASSIGN_OR_RETURN(const audit::PhaseCommitted commit,
                     audit::ReadPhaseCommitted(leaf.leaf.event));
    if (commit.key != LogKey(id, EpochFrom(outcome.epoch()))) {
      return Error(StatusCode::kDataLoss,
                   "the aggregator told of a commit that its own log describes otherwise");
    }
    return SettleCommit(*books_, site_->id, id, outcome.leaf().index(), commit);
  }
  if (leaf.leaf.event.type() != audit::EventType::kPhaseAbandoned) {
    return Error(StatusCode::kDataLoss, "an abandoned phase that the log does not know");
  }
  LogInfo("round " + std::to_string(id.round) + " of job `" + id.job.text() + "` abandoned");
  return OkStatus();  // the bytes stay: the next attempt asks for the same ones
}

Status Agent::TakeJobEnd(const v1::JobEnded& ended) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(ended.job()));
  runner_->Cancel(job);
  held_.erase(job);
  // The grant was for this run: what is offered or opened of it from now on is a replay.
  RETURN_IF_ERROR(
      books_->With([&](SiteStore& store) { return store.CloseJob(job, Reason::kGrantUsed); })
          .status());
  RETURN_IF_ERROR(SettleJobEnd(*books_, job));
  LogInfo("job `" + job.text() + "` has ended");
  return OkStatus();
}

}  // namespace domicile::site_agent
