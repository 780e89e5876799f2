// From a full sum to the next model: decided for every contributor, durable, then told.
#include <set>
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "audit/records.h"
#include "base/file.h"
#include "base/log.h"
#include "crypto/tree_digest.h"

namespace domicile::aggregator {

namespace {

constexpr std::uint64_t kLargestModel = std::uint64_t{1} << 36U;

}  // namespace

Contributors Coordinator::InRoster(std::span<const Contributor> contributors) const {
  Contributors counted;
  for (const Contributor& contributor : contributors) {
    if (const contracts::RosterEntry* entry =
            identity_.roster.Find(crypto::Role::kSite, contributor.site.text())) {
      counted.push_back({.site = entry->name, .organisation = entry->organisation});
    }
  }
  return counted;
}

void Coordinator::Commit(Job& job, const CommitPhase& action) {
  StatusOr<std::variant<PhaseResult, policy::Reason>> made = MakeResult(job, action);
  Status stored = made.status();
  if (made.ok()) {
    if (auto* result = std::get_if<PhaseResult>(&*made)) {
      stored = StoreResult(job, action, std::move(*result));
    } else {
      stored = Apply(job, PhaseFailed{.key = action.key,
                                      .epoch = action.epoch,
                                      .reason = std::get<policy::Reason>(*made)});
    }
  }
  if (stored.ok()) {
    return;
  }
  // The sum is still here: what could not be made durable is tried again, and the sites wait.
  LogError("committing round " + std::to_string(action.key.round) + " of job `" + job.id.text() +
           "`, trying again: " + std::string(Message(stored)));
  timers_.Arm("commit/" + job.id.text(), clock_.Monotonic() + std::chrono::seconds(1),
              [this, id = job.id, action] {
                const MutexLock lock(mutex_);
                Job* again = FindJob(id);
                if (again != nullptr && again->state.current &&
                    again->state.current->epoch == action.epoch &&
                    again->state.current->key == action.key) {
                  Commit(*again, action);
                }
              });
}

StatusOr<std::variant<PhaseResult, policy::Reason>> Coordinator::MakeResult(
    Job& job, const CommitPhase& action) {
  const Contributors counted = InRoster(action.contributors);
  for (const Contributor& contributor : action.contributors) {
    const auto known = known_.find(contributor.site);
    if (known == known_.end()) {
      return policy::Reason::kNotInRoster;
    }
    const Decided decided = DecideRelease(known->second.policy, *job.plan, BorderOf(known->second),
                                          counted, clock_.Now());
    if (!decided.Allowed()) {
      return decided.decision.Why();
    }
  }
  DOMICILE_CHECK(job.sum.has_value());
  ASSIGN_OR_RETURN(const std::string model,
                   ReadFile(store_.ModelPath(job.model.digest), kLargestModel));
  return job.sum->Finish(*job.plan, AsBytes(model));
}

Status Coordinator::StoreResult(Job& job, const CommitPhase& action, PhaseResult result) {
  ModelRow model = job.model;
  if (result.model) {
    model = {.digest = crypto::TreeDigest(*result.model), .size_bytes = result.model->size()};
    RETURN_IF_ERROR(store_.WriteModel(model.digest, *result.model));
  }
  audit::PhaseCommitted record{
      .key = LogKey(job.id, action.key, action.epoch), .contributors = {}, .model = model.digest};
  std::vector<SiteId> sites;
  for (const Contributor& contributor : action.contributors) {
    sites.push_back(contributor.site);
    record.contributors.push_back({.site = contributor.site,
                                   .digest = contributor.digest,
                                   .weight = static_cast<std::uint64_t>(contributor.weight)});
  }
  ASSIGN_OR_RETURN(const audit::Event leaf, ToEvent(record));
  ASSIGN_OR_RETURN(const std::uint64_t leaf_index, log_->Size());
  const CommitRow row{.round = action.key.round,
                      .phase = action.key.phase,
                      .epoch = action.epoch,
                      .leaf = leaf_index,
                      .metrics = PrintMetrics(result.metrics)};
  const PhaseCommitted event{.key = action.key,
                             .epoch = action.epoch,
                             .contributors = action.contributors,
                             .model = result.model ? model.digest : Digest{}};
  return Apply(
      job, event, {leaf},
      [&]() REQUIRES(mutex_) -> Status {
        RETURN_IF_ERROR(store_.AddCommit(job.id, row));
        return result.model ? store_.AddModel(job.id, action.key.round, model) : OkStatus();
      },
      [&]() REQUIRES(mutex_) {
        job.model = model;
        job.contributors.insert(sites.begin(), sites.end());
        job.last_contributors = InRoster(action.contributors);
        job.metrics.push_back({.key = action.key, .metrics = result.metrics});
        job.commits[{row.round, row.phase}] = row;
        job.sum.reset();
        job.due.emplace_back(CommitDue{.key = action.key});
        Tell(job);
      });
}

}  // namespace domicile::aggregator
