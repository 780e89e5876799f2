// The last stage of a pipeline: a thread that works ahead of the training step, and the measure of
// how long the step had to wait for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "models/data/pipeline.h"

namespace domicile::models {

struct PrefetchOptions {
  std::size_t depth = 2;       // elements held ready at first, >= 1
  std::size_t max_depth = 16;  // doubled up to this, each time the consumer finds none
};

// Runs the stage below in a thread of its own. Next and Restart: one thread at a time.
template <typename T>
class PrefetchStage final : public Stage<T> {
 public:
  // The clock must outlive the stage.
  PrefetchStage(StagePtr<T> below, const Clock& clock, PrefetchOptions options)
      : below_(std::move(below)), clock_(&clock), options_(options), depth_(options.depth) {
    Start();
  }
  ~PrefetchStage() override { Stop(); }

  PrefetchStage(const PrefetchStage&) = delete;
  PrefetchStage& operator=(const PrefetchStage&) = delete;

  std::optional<T> Next() override {
    const MonotonicTime before = clock_->Monotonic();
    std::optional<T> element;
    {
      const MutexLock lock(mutex_);
      if (ready_.empty() && !ended_) {
        depth_ = std::min(depth_ * 2, options_.max_depth);
      }
      while (ready_.empty() && !ended_) {
        changed_.wait(mutex_);
      }
      if (!ready_.empty()) {
        element = std::move(ready_.front());
        ready_.pop_front();
      }
    }
    changed_.notify_all();
    waited_ += clock_->Monotonic() - before;
    return element;
  }

  void Restart(std::uint64_t epoch) override {
    Stop();
    below_->Restart(epoch);
    {
      const MutexLock lock(mutex_);
      ready_.clear();
    }
    Start();
  }

  std::size_t Skip(std::size_t count) override {
    Stop();
    std::size_t skipped = 0;
    {
      const MutexLock lock(mutex_);
      skipped = std::min(count, ready_.size());
      ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(skipped));
    }
    skipped += below_->Skip(count - skipped);
    Start();
    return skipped;
  }

  // The time that calls of Next took altogether. Divided by the time of the whole loop it is the
  // share of input; near 0 where the pipeline keeps up.
  std::chrono::nanoseconds Waited() const { return waited_; }

 private:
  void Start() {
    {
      const MutexLock lock(mutex_);
      stop_ = false;
      ended_ = false;
    }
    worker_ = std::jthread([this] { Work(); });
  }

  void Stop() {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    worker_ = {};  // joins
  }

  void Work() {
    while (true) {
      {
        const MutexLock lock(mutex_);
        while (!stop_ && ready_.size() >= depth_) {
          changed_.wait(mutex_);
        }
        if (stop_) {
          return;
        }
      }
      std::optional<T> element = below_->Next();
      const bool ended = !element;
      {
        const MutexLock lock(mutex_);
        ended_ = ended;
        if (element) {
          ready_.push_back(std::move(*element));
        }
      }
      changed_.notify_all();
      if (ended) {
        return;
      }
    }
  }

  StagePtr<T> below_;  // of the worker while there is one
  const Clock* clock_;
  PrefetchOptions options_;
  std::chrono::nanoseconds waited_{0};

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<T> ready_ GUARDED_BY(mutex_);
  std::size_t depth_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;

  std::jthread worker_;
};

template <typename T>
std::unique_ptr<PrefetchStage<T>> Prefetch(StagePtr<T> below, const Clock& clock,
                                           PrefetchOptions options = {}) {
  return std::make_unique<PrefetchStage<T>>(std::move(below), clock, options);
}

}  // namespace domicile::models
