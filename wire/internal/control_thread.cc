#include "wire/internal/control_thread.h"

#include <utility>

namespace domicile::wire::internal {

ControlThread::ControlThread() : thread_([this] { Run(); }) {}

ControlThread::~ControlThread() { Stop(); }

void ControlThread::Post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) {
      return;
    }
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ControlThread::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ControlThread::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) {
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace domicile::wire::internal
