// A thread at the side of another one: what it is given runs in order, while its owner goes on.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace domicile::models {

// For good after the first error: nothing that was given later runs. Its owner, one thread at a
// time, calls it.
class SideThread {
 public:
  using Task = std::function<Status()>;

  SideThread();
  // As GiveUp.
  ~SideThread();

  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Returns at once. What the task touches is the thread's until Finish or GiveUp returns.
  void Begin(Task task);
  // Waits for all tasks. Returns the first error of any so far; kUnavailable if one threw.
  Status Finish();
  // Drops the tasks that have not begun and waits for the one that has.
  void GiveUp();

 private:
  void Work();

  Mutex mutex_;
  ConditionVariable given_;
  ConditionVariable done_;
  std::deque<Task> waiting_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  Status failure_ GUARDED_BY(mutex_) = OkStatus();
  std::jthread thread_;  // last: joined before what it uses goes
};

}  // namespace domicile::models
