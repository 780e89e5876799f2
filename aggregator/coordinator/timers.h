// Deadlines on the monotonic clock, each a function called once when it is due.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace domicile::aggregator {

// Thread-safe. Functions run on the timers' own thread, one after the other, without a lock held.
class Timers {
 public:
  explicit Timers(const Clock& clock);
  ~Timers();  // joins; what is not due yet is dropped

  // Arms a timer under a name, in place of an earlier one of that name.
  void Arm(const std::string& name, MonotonicTime due, std::function<void()> run);
  void Cancel(const std::string& name);

 private:
  struct Timer {
    MonotonicTime due;
    std::function<void()> run;
  };
  void Loop(const std::stop_token& stop);

  const Clock& clock_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, Timer> timers_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace domicile::aggregator
