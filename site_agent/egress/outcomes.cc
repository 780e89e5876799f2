// Openings and outcomes: believed only as verified leaves of the aggregator's log.
#include <algorithm>
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "crypto/sha256.h"
#include "site_agent/egress/agent.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

StatusOr<PhaseId> PhaseFrom(const v1::PhaseId& phase) {
  PhaseId id;
  ASSIGN_OR_RETURN(id.job, JobId::Parse(phase.job()));
  id.round = phase.round();
  id.phase = static_cast<contracts::PhaseKind>(phase.phase());
  return id;
}

audit::PhaseKey KeyOf(const PhaseId& id, const Epoch& epoch) {
  return {.job = id.job,
          .round = id.round,
          .phase = std::string(contracts::PhaseName(id.phase)),
          .epoch = epoch};
}

Epoch EpochFrom(const v1::Epoch& epoch) {
  return {.starts = epoch.starts(), .attempt = epoch.attempt()};
}

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

  const auto refuse = [&](Reason reason) -> Status {
    LogWarning("round " + std::to_string(phase.id.round) + " of job `" + phase.id.job.text() +
               "` refused: " + std::string(policy::Code(reason)));
    v1::SiteMessage message;
    *message.mutable_phase_reply()->mutable_phase() = open.phase();
    *message.mutable_phase_reply()->mutable_epoch() = open.epoch();
    message.mutable_phase_reply()->mutable_refusal()->set_reason(
        static_cast<std::uint32_t>(reason));
    return connection.control->Send(message);
  };
  ASSIGN_OR_RETURN(const std::optional<JobRow> job,
                   books_->With([&](SiteStore& store) { return store.FindJob(phase.id.job); }));
  if (!job) {
    return refuse(Reason::kJobUnknown);
  }
  if (opened.key != KeyOf(phase.id, phase.epoch) || opened.model != phase.model ||
      opened.floor != open.floor() || opened.plan != crypto::Sha256(AsBytes(job->plan)) ||
      std::find(opened.participants.begin(), opened.participants.end(), site_->id) ==
          opened.participants.end()) {
    // Said one thing and logged another: what was logged is what an auditor will see.
    return Error(StatusCode::kDataLoss,
                 "the aggregator opened a phase that its own log describes otherwise");
  }
  if (phase.epoch.starts != terms.starts) {
    return refuse(Reason::kEpochTooSmall);
  }
  const StatusOr<contracts::Plan> plan = contracts::PlanFromText(job->plan);
  if (!plan.ok()) {
    return refuse(Reason::kMalformed);
  }
  const std::uint32_t minimum = terms.policies.effective.MinContributors(plan->dataset);
  if (opened.floor < minimum || KnownOrganisations(terms.roster, opened.participants) < minimum) {
    return refuse(Reason::kMinContributors);
  }
  runner_->Begin(std::move(phase));
  return OkStatus();
}

Status Agent::TakeOutcome(const v1::PhaseOutcome& outcome, Connection& connection) {
  ASSIGN_OR_RETURN(const PhaseId id, PhaseFrom(outcome.phase()));
  ASSIGN_OR_RETURN(const audit::CheckedLeaf leaf,
                   CheckWireLeaf(outcome.leaf(), connection.terms.aggregator_log));
  if (outcome.outcome() == v1::OUTCOME_COMMITTED) {
    ASSIGN_OR_RETURN(const audit::PhaseCommitted commit,
                     audit::ReadPhaseCommitted(leaf.leaf.event));
    if (commit.key != KeyOf(id, EpochFrom(outcome.epoch()))) {
      return Error(StatusCode::kDataLoss,
                   "the aggregator told of a commit that its own log describes otherwise");
    }
    return TakeCommit(id, outcome.leaf().index(), commit);
  }
  if (leaf.leaf.event.type() != audit::EventType::kPhaseAbandoned) {
    return Error(StatusCode::kDataLoss, "an abandoned phase that the log does not know");
  }
  LogInfo("round " + std::to_string(id.round) + " of job `" + id.job.text() + "` abandoned");
  return OkStatus();  // the bytes stay: the next attempt asks for the same ones
}

Status Agent::TakeCommit(const PhaseId& id, std::uint64_t leaf_index,
                         const audit::PhaseCommitted& commit) {
  ASSIGN_OR_RETURN(std::optional<JobRow> job,
                   books_->With([&](SiteStore& store) { return store.FindJob(id.job); }));
  if (!job) {
    return OkStatus();  // of a job this site has no part in
  }
  RETURN_IF_ERROR(books_->With([&](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store.Db()));
    ASSIGN_OR_RETURN(const bool is_new, store.AddCommit(id, leaf_index));
    if (is_new) {
      job->train_commits += id.phase == contracts::PhaseKind::kTrain ? 1 : 0;
      job->statistics_committed =
          job->statistics_committed || id.phase == contracts::PhaseKind::kStatistics;
      if (leaf_index >= job->committed_leaf) {
        job->committed_model = commit.model;
        job->committed_leaf = leaf_index;
      }
      RETURN_IF_ERROR(store.PutJob(*job));
    }
    return transaction.Commit();
  }));
  ASSIGN_OR_RETURN(const std::optional<OutboxRow> row,
                   books_->With([&](SiteStore& store) { return store.FindOutbox(id); }));
  if (!row) {
    return OkStatus();
  }
  const bool counted =
      std::any_of(commit.contributors.begin(), commit.contributors.end(),
                  [&](const audit::Contributor& contributor) {
                    return contributor.site == site_->id && contributor.digest == row->digest;
                  });
  return DropUpdate(*row, commit.key, counted ? Reason::kNone : Reason::kDeadline, leaf_index);
}

// The outcome is known: one transaction with the leaf that says it, then the bytes go.
Status Agent::DropUpdate(const OutboxRow& row, const audit::PhaseKey& key, Reason reason,
                         std::optional<std::uint64_t> commit_leaf) {
  RETURN_IF_ERROR(books_
                      ->Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                        RETURN_IF_ERROR(store.RemoveOutbox(row.phase));
                        audit::EventBuilder leaf(reason == Reason::kNone
                                                     ? audit::EventType::kUpdateCounted
                                                     : audit::EventType::kUpdateNotCounted);
                        leaf.Phase(key).Set("digest", row.digest);
                        if (commit_leaf) {
                          leaf.Set("commit_seq", *commit_leaf);
                        }
                        if (reason != Reason::kNone) {
                          leaf.Set("reason", std::string(policy::Code(reason)));
                        }
                        return leaf.Build();
                      })
                      .status());
  return RemoveFile(books_->With([&](SiteStore& store) { return store.OutboxPath(row.digest); }));
}

Status Agent::TakeJobEnd(const v1::JobEnded& ended) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(ended.job()));
  runner_->Cancel(job);
  held_.erase(job);
  ASSIGN_OR_RETURN(const std::vector<OutboxRow> outbox,
                   books_->With([](SiteStore& store) { return store.Outbox(); }));
  for (const OutboxRow& row : outbox) {
    if (row.phase.job == job) {
      // Which attempt it was does not matter any more: the job has none left.
      RETURN_IF_ERROR(DropUpdate(row, KeyOf(row.phase, {.starts = 1, .attempt = 1}),
                                 Reason::kSuperseded, std::nullopt));
    }
  }
  LogInfo("job `" + job.text() + "` has ended");
  return OkStatus();
}

}  // namespace domicile::site_agent
