#include "models/strategy/side_thread.h"

#include <utility>

#include "models/strategy/watchdog.h"

namespace domicile::models {

SideThread::SideThread() : thread_([this] { Work(); }) {}

SideThread::~SideThread() {
  {
    const MutexLock lock(mutex_);
    waiting_.clear();
    stop_ = true;
  }
  given_.notify_one();
}

void SideThread::Begin(Task task) {
  {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) {
      return;
    }
    waiting_.push_back(std::move(task));
  }
  given_.notify_one();
}

Status SideThread::Finish() {
  const MutexLock lock(mutex_);
  while (busy_ || !waiting_.empty()) {
    done_.wait(mutex_);
  }
  return failure_;
}

void SideThread::GiveUp() {
  const MutexLock lock(mutex_);
  waiting_.clear();
  while (busy_) {
    done_.wait(mutex_);
  }
}

void SideThread::Work() {
  while (true) {
    Task task;
    {
      const MutexLock lock(mutex_);
      while (!stop_ && waiting_.empty()) {
        given_.wait(mutex_);
      }
      if (stop_) {
        return;
      }
      task = std::move(waiting_.front());
      waiting_.pop_front();
      busy_ = true;
    }
    Status result = Guarded(task);
    task = nullptr;  // what it holds goes before its owner goes on
    {
      const MutexLock lock(mutex_);
      busy_ = false;
      if (!result.ok()) {
        failure_ = std::move(result);
        waiting_.clear();
      }
    }
    done_.notify_one();
  }
}

}  // namespace domicile::models
