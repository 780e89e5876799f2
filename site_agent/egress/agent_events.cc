#include "site_agent/egress/agent_events.h"

#include <utility>

namespace domicile::site_agent {

void AgentEvents::Push(AgentEvent event) {
  {
    const MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

std::optional<AgentEvent> AgentEvents::Next(std::chrono::steady_clock::time_point until,
                                            const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, stop, until, [this] { return !events_.empty(); });
  if (events_.empty() || stop.stop_requested()) {
    return std::nullopt;
  }
  AgentEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void AgentEvents::Clear() {
  const MutexLock lock(mutex_);
  events_.clear();
}

void EventListener::Detach() {
  const MutexLock lock(mutex_);
  is_attached_ = false;
}

void EventListener::Push(AgentEvent event) {
  const MutexLock lock(mutex_);
  if (is_attached_) {
    events_.Push(std::move(event));
  }
}

}  // namespace domicile::site_agent
