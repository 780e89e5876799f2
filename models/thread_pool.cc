#include "models/thread_pool.h"

#include "base/status.h"

namespace domicile::models {

ThreadPool::ThreadPool(std::size_t num_threads) {
  DOMICILE_CHECK(num_threads >= 1);
  workers_.reserve(num_threads - 1);
  for (std::size_t thread = 1; thread < num_threads; ++thread) {
    workers_.emplace_back([this, thread](const std::stop_token& stop) { Work(stop, thread); });
  }
}

ThreadPool::~ThreadPool() {
  for (std::jthread& worker : workers_) {
    worker.request_stop();
  }
  {
    // A worker between its check and its sleep holds the lock, so the wake-up cannot be missed.
    const MutexLock lock(mutex_);
  }
  changed_.notify_all();
  workers_.clear();
}

void ThreadPool::Run(std::size_t num_pieces, const std::function<void(std::size_t)>& run) {
  if (workers_.empty() || num_pieces <= 1) {
    for (std::size_t piece = 0; piece < num_pieces; ++piece) {
      run(piece);
    }
    return;
  }
  {
    const MutexLock lock(mutex_);
    num_pieces_ = num_pieces;
    run_ = &run;
    num_busy_ = workers_.size();
    ++generation_;
  }
  changed_.notify_all();
  RunShare(0, num_pieces, run);
  const MutexLock lock(mutex_);
  while (num_busy_ != 0) {
    changed_.wait(mutex_);
  }
}

void ThreadPool::Work(const std::stop_token& stop, std::size_t thread) {
  std::uint64_t done = 0;
  while (true) {
    std::size_t num_pieces = 0;
    const std::function<void(std::size_t)>* run = nullptr;
    {
      const MutexLock lock(mutex_);
      while (!stop.stop_requested() && generation_ == done) {
        changed_.wait(mutex_);
      }
      if (stop.stop_requested()) {
        return;
      }
      done = generation_;
      num_pieces = num_pieces_;
      run = run_;
    }
    RunShare(thread, num_pieces, *run);
    {
      const MutexLock lock(mutex_);
      --num_busy_;
    }
    changed_.notify_all();
  }
}

void ThreadPool::RunShare(std::size_t thread, std::size_t num_pieces,
                          const std::function<void(std::size_t)>& run) const {
  const std::size_t num_threads = NumThreads();
  const std::size_t last = (thread + 1) * num_pieces / num_threads;
  for (std::size_t piece = thread * num_pieces / num_threads; piece < last; ++piece) {
    run(piece);
  }
}

}  // namespace domicile::models
