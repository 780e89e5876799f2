// One thread that does what it is given, in order.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace domicile::wire::internal {

// Thread-safe, save Stop and the destructor: one thread, and not this one.
class ControlThread {
 public:
  ControlThread();
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // After Stop, does nothing.
  void Post(std::function<void()> task);
  // Does all that was posted, then ends. Idempotent.
  void Stop();

 private:
  void Run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace domicile::wire::internal
