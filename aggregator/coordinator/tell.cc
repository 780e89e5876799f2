// What sites are told of a job: commits, openings, the end, each once it can be proven.
#include <algorithm>
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "base/log.h"

namespace domicile::aggregator {

namespace {

constexpr std::chrono::seconds kRetry{1};

}  // namespace

void Coordinator::Tell(Job& job) {
  // One head covers all that is due: it is signed once, and then only read.
  const StatusOr<audit::SignedHead> head = log_->Head();
  if (!head.ok()) {
    LogError("job `" + job.id.text() +
             "`: its sites are told later: " + std::string(Message(head.status())));
    timers_.Arm("tell/" + job.id.text(), clock_.Monotonic() + kRetry, [this, id = job.id] {
      const MutexLock lock(mutex_);
      if (Job* again = FindJob(id)) {
        Tell(*again);
      }
    });
    return;
  }
  while (!job.due.empty()) {
    const Due due = job.due.front();
    job.due.pop_front();
    TellOne(job, due);
  }
}

void Coordinator::TellOne(Job& job, const Due& due) {
  if (const auto* commit = std::get_if<CommitDue>(&due)) {
    // To all that took part, also those that were late: they drop their copies.
    for (const auto& [site, record] : job.state.sites) {
      if (Session* session = FindSession(site)) {
        PushCommits(job, *session, commit->key);
      }
    }
  } else if (const auto* opening = std::get_if<OpeningDue>(&due)) {
    if (!job.state.current || job.state.current->key != opening->key ||
        job.state.current->epoch != opening->epoch) {
      return;  // over before anybody heard of it
    }
    const StatusOr<audit::ProvenLeaf> proven = log_->LeafWithProof(job.opened_leaf);
    if (!proven.ok()) {
      LogError(std::string(Message(proven.status())));
      return;  // a log that cannot be read: the deadline ends the attempt
    }
    for (const auto& [site, participation] : job.state.current->participants) {
      PushOpen(job, site, *proven);
    }
  } else if (const auto* end = std::get_if<EndDue>(&due)) {
    for (const auto& [site, record] : job.state.sites) {
      PushToParticipants({site},
                         EndedMessage{.job = job.id, .stage = end->stage, .reason = end->reason});
    }
  }
}

void Coordinator::PushOpen(Job& job, const SiteId& site, const audit::ProvenLeaf& opening) {
  Session* session = FindSession(site);
  if (session == nullptr || !job.state.current) {
    return;
  }
  const CurrentPhase& current = *job.state.current;
  const std::chrono::seconds left = job.state.rules.deadline - WaitedOf(job);
  session->port->Push(OpenMessage{.job = job.id,
                                  .key = current.key,
                                  .epoch = current.epoch,
                                  .model = job.model,
                                  .deadline_seconds = static_cast<std::uint32_t>(
                                      std::max(left, std::chrono::seconds(1)).count()),
                                  .floor = current.floor,
                                  .opening = opening});
}

}  // namespace domicile::aggregator
