#include "models/thread_pool.h"

#include "base/status.h"

namespace domicile::models {
namespace {

// How often a thread looks before it sleeps: some tens of us. Waking a thread takes longer than
// most pieces of a small model's step; more looking would only take time from others where a core
// is shared.
constexpr int kLooks = 2000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void WaitWhile(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int look = 0; look < kLooks; ++look) {
    if (value != old) {
      return;
    }
    Pause();
  }
  value.wait(old);
}

}  // namespace

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
  ++generation_;
  generation_.notify_all();
  workers_.clear();
}

void ThreadPool::Run(std::size_t num_pieces, const std::function<void(std::size_t)>& run) {
  if (workers_.empty() || num_pieces <= 1) {
    for (std::size_t piece = 0; piece < num_pieces; ++piece) {
      run(piece);
    }
    return;
  }
  num_pieces_ = num_pieces;
  run_ = &run;
  num_busy_ = static_cast<std::uint32_t>(workers_.size());
  ++generation_;
  generation_.notify_all();
  RunShare(0, num_pieces, run);
  while (const std::uint32_t busy = num_busy_) {
    WaitWhile(num_busy_, busy);
  }
}

void ThreadPool::Work(const std::stop_token& stop, std::size_t thread) {
  for (std::uint32_t done = 0;; ++done) {
    WaitWhile(generation_, done);
    if (stop.stop_requested()) {
      return;
    }
    RunShare(thread, num_pieces_, *run_);
    if (--num_busy_ == 0) {
      num_busy_.notify_one();
    }
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
