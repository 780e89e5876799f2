// The time waited for a deadline, kept over restarts: a wait that began anew at each start could be
// drawn out for ever.
#include <algorithm>

#include "aggregator/coordinator/coordinator.h"
#include "base/log.h"

namespace domicile::aggregator {

namespace {

constexpr int kWritesADeadline = 40;
constexpr std::chrono::seconds kShortestPace{1};
constexpr std::chrono::seconds kLongestPace{15};

}  // namespace

std::chrono::seconds WaitPace(std::chrono::seconds deadline) {
  return std::clamp(deadline / kWritesADeadline, kShortestPace, kLongestPace);
}

std::chrono::seconds Coordinator::WaitedOf(const Job& job) const {
  const std::chrono::seconds before =
      job.state.current ? job.state.current->waited : std::chrono::seconds(0);
  return before +
         std::chrono::duration_cast<std::chrono::seconds>(clock_.Monotonic() - job.armed_at);
}

void Coordinator::KeepWaited(const JobId& id, std::chrono::seconds pace) {
  timers_.Arm("wait/" + id.text(), clock_.Monotonic() + pace, [this, id, pace] {
    const MutexLock lock(mutex_);
    Job* job = FindJob(id);
    if (job == nullptr || job->HasEnded()) {
      return;
    }
    const Status kept = store_.SetWaited(id, WaitedOf(*job));
    if (!kept.ok()) {
      LogError("job `" + id.text() + "`: the time waited: " + std::string(Message(kept)));
    }
    KeepWaited(id, pace);
  });
}

StatusOr<Event> Coordinator::StartedEvent(const Job& job) {
  ASSIGN_OR_RETURN(const std::chrono::seconds kept, store_.Waited(job.id));
  return AggregatorStarted{.starts = store_.Starts(),
                           .waited = kept + WaitPace(job.state.rules.deadline)};
}

}  // namespace domicile::aggregator
