// The end of a pipeline that feeds a training step: elements are made from what is below by several
// threads, ahead of the step, as many and as far ahead as measurements say.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "models/data/stage.h"
#include "models/data/tuning.h"

namespace domicile::models {

struct FeedOptions {
  PipelineLimits limits{};
  PipelineTuning first{};       // to begin with
  std::size_t tune_every = 16;  // elements taken; 0: never
};

struct FeedReport {
  PipelineTuning tuning{};
  std::uint64_t elements = 0;
  std::chrono::nanoseconds waited{0};   // in Next
  std::chrono::nanoseconds elapsed{0};  // from the first Next of each epoch on

  // The share of the step's time that it waited for input; near 0 where the pipeline keeps up.
  double StallShare() const {
    return elapsed.count() > 0
               ? static_cast<double>(waited.count()) / static_cast<double>(elapsed.count())
               : 0;
  }
};

// INVARIANT: elements come in the order of the stage below, whatever the number of threads. Next,
// Restart, Skip: one thread at a time.
template <typename In, typename Out>
class FeedStage final : public Stage<Out> {
 public:
  // `make` must not throw and must be callable from several threads; `bytes_of` says how much
  // memory an element takes. The clock must outlive the stage.
  FeedStage(StagePtr<In> below, std::function<Out(const In&)> make,
            std::function<std::uint64_t(const Out&)> bytes_of, const Clock& clock,
            FeedOptions options)
      : below_(std::move(below)),
        make_(std::move(make)),
        bytes_of_(std::move(bytes_of)),
        clock_(&clock),
        options_(options),
        tuning_(options.first) {
    tuning_.threads = std::clamp<std::size_t>(tuning_.threads, 1, options_.limits.max_threads);
    tuning_.depth = std::clamp<std::size_t>(tuning_.depth, 1, options_.limits.max_depth);
    for (std::size_t rank = 0; rank < options_.limits.max_threads; ++rank) {
      threads_.emplace_back([this, rank] { Work(rank); });
    }
  }
  ~FeedStage() override {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    threads_.clear();  // joins
  }

  FeedStage(const FeedStage&) = delete;
  FeedStage& operator=(const FeedStage&) = delete;

  std::optional<Out> Next() override {
    const MonotonicTime before = clock_->Monotonic();
    std::optional<Out> element;
    {
      const MutexLock lock(mutex_);
      if (!last_) {
        last_ = before;
      }
      while (!(slots_.empty() ? ended_ : slots_.front().has_value())) {
        changed_.wait(mutex_);
      }
      if (!slots_.empty()) {
        element = std::move(slots_.front());
        slots_.pop_front();
      }
      const MonotonicTime now = clock_->Monotonic();
      Count(now, now - before, element.has_value());
    }
    changed_.notify_all();
    return element;
  }

  void Restart(std::uint64_t epoch) override {
    const MutexLock lock(mutex_);
    Pause();
    slots_.clear();
    below_->Restart(epoch);
    Resume();
  }

  std::size_t Skip(std::size_t count) override {
    const MutexLock lock(mutex_);
    Pause();
    std::size_t skipped = std::min(count, slots_.size());
    slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(skipped));
    if (skipped < count) {
      skipped += below_->Skip(count - skipped);
    }
    Resume();
    return skipped;
  }

  FeedReport Report() const {
    const MutexLock lock(mutex_);
    FeedReport report = report_;
    report.tuning = tuning_;
    return report;
  }

 private:
  // Waits until no thread makes an element: then all slots are filled.
  void Pause() REQUIRES(mutex_) {
    paused_ = true;
    while (num_making_ > 0) {
      changed_.wait(mutex_);
    }
  }
  void Resume() REQUIRES(mutex_) {
    paused_ = false;
    ended_ = false;
    last_.reset();
    changed_.notify_all();
  }

  void Count(MonotonicTime now, std::chrono::nanoseconds waited, bool taken) REQUIRES(mutex_) {
    const std::chrono::nanoseconds elapsed = now - *last_;
    last_ = now;
    report_.elapsed += elapsed;
    report_.waited += waited;
    measure_.elapsed += elapsed;
    measure_.waited += waited;
    if (!taken) {
      return;
    }
    ++report_.elements;
    if (++measure_.taken == options_.tune_every) {
      tuning_ = Tune(tuning_, measure_, options_.limits);
      measure_ = {.largest_bytes = measure_.largest_bytes};
    }
  }

  bool MayMake(std::size_t rank) const REQUIRES(mutex_) {
    const bool fits = slots_.empty() ||
                      (slots_.size() + 1) * measure_.largest_bytes <= options_.limits.memory_bytes;
    return !paused_ && !ended_ && rank < tuning_.threads && slots_.size() < tuning_.depth && fits;
  }

  void Work(std::size_t rank) {
    while (true) {
      std::optional<In> input;
      std::optional<Out>* slot = nullptr;
      {
        const MutexLock lock(mutex_);
        while (!stop_ && !MayMake(rank)) {
          changed_.wait(mutex_);
        }
        if (stop_) {
          return;
        }
        // Under the lock: this is what gives elements their order.
        input = below_->Next();
        if (input) {
          // Other elements of a deque stay where they are when its ends change.
          slot = &slots_.emplace_back();
          ++num_making_;
        } else {
          ended_ = true;
        }
      }
      if (slot != nullptr) {
        const MonotonicTime before = clock_->Monotonic();
        Out made = make_(*input);
        const std::chrono::nanoseconds took = clock_->Monotonic() - before;
        const MutexLock lock(mutex_);
        measure_.making += took;
        ++measure_.made;
        measure_.largest_bytes = std::max(measure_.largest_bytes, bytes_of_(made));
        *slot = std::move(made);
        --num_making_;
      }
      changed_.notify_all();
    }
  }

  StagePtr<In> below_;  // of whoever holds the lock
  std::function<Out(const In&)> make_;
  std::function<std::uint64_t(const Out&)> bytes_of_;
  const Clock* clock_;
  FeedOptions options_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::optional<Out>> slots_ GUARDED_BY(mutex_);  // in order; empty: being made
  std::size_t num_making_ GUARDED_BY(mutex_) = 0;
  bool ended_ GUARDED_BY(mutex_) = false;
  bool paused_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  PipelineTuning tuning_ GUARDED_BY(mutex_);
  PipelineMeasure measure_ GUARDED_BY(mutex_);
  FeedReport report_ GUARDED_BY(mutex_);
  std::optional<MonotonicTime> last_ GUARDED_BY(mutex_);  // the last time that was counted

  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

template <typename In, typename Out>
std::unique_ptr<FeedStage<In, Out>> Feed(StagePtr<In> below, std::function<Out(const In&)> make,
                                         std::function<std::uint64_t(const Out&)> bytes_of,
                                         const Clock& clock, FeedOptions options = {}) {
  return std::make_unique<FeedStage<In, Out>>(std::move(below), std::move(make),
                                              std::move(bytes_of), clock, options);
}

}  // namespace domicile::models
