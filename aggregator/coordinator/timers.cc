#include "aggregator/coordinator/timers.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace domicile::aggregator {

Timers::Timers(const Clock& clock)
    : clock_(clock), thread_([this](const std::stop_token& stop) { Loop(stop); }) {}

Timers::~Timers() {
  thread_.request_stop();
  {
    const MutexLock lock(mutex_);  // so that the loop is either before its check or in its wait
  }
  changed_.notify_all();
}

void Timers::Arm(const std::string& name, MonotonicTime due, std::function<void()> run) {
  {
    const MutexLock lock(mutex_);
    timers_.insert_or_assign(name, Timer{due, std::move(run)});
  }
  changed_.notify_all();
}

void Timers::Cancel(const std::string& name) {
  const MutexLock lock(mutex_);
  timers_.erase(name);
}

void Timers::Loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::function<void()> run;
    {
      const MutexLock lock(mutex_);
      const auto next = std::min_element(
          timers_.begin(), timers_.end(),
          [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
      if (next == timers_.end()) {
        if (!stop.stop_requested()) {
          changed_.wait(mutex_);
        }
        continue;
      }
      const auto left = next->second.due - clock_.Monotonic();
      if (left > std::chrono::nanoseconds(0)) {
        if (!stop.stop_requested()) {
          changed_.wait_for(mutex_, left);
        }
        continue;
      }
      run = std::move(next->second.run);
      timers_.erase(next);
    }
    run();
  }
}

}  // namespace domicile::aggregator
