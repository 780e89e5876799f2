// The input pipeline: small stages that each pull from the one below.
//
//   auto batches = Prefetch(Batch(Shuffle(Map(Cache(Shard(Range(n), workers, me)), ...), seed),
//                                 32, LastBatch::kKeep), clock);
//
// A stage gives its elements in the same order on every machine and for every number of threads.
// Each stage owns the one below. One thread at a time, unless a stage says otherwise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "models/thread_pool.h"

namespace domicile::models {

template <typename T>
class Stage {
 public:
  virtual ~Stage() = default;
  // The next element of this epoch; empty at its end, and then again until Restart.
  virtual std::optional<T> Next() = 0;
  // Begins an epoch. A new stage stands at the beginning of epoch 0.
  virtual void Restart(std::uint64_t epoch) = 0;
};

template <typename T>
using StagePtr = std::unique_ptr<Stage<T>>;

namespace internal {

class RangeStage final : public Stage<std::size_t> {
 public:
  explicit RangeStage(std::size_t size) : size_(size) {}
  std::optional<std::size_t> Next() override {
    return next_ < size_ ? std::optional(next_++) : std::nullopt;
  }
  void Restart(std::uint64_t /*epoch*/) override { next_ = 0; }

 private:
  std::size_t size_;
  std::size_t next_ = 0;
};

template <typename T>
class ShardStage final : public Stage<T> {
 public:
  ShardStage(StagePtr<T> below, std::size_t num, std::size_t index)
      : below_(std::move(below)), num_(num), index_(index) {}
  std::optional<T> Next() override {
    for (std::optional<T> element = below_->Next(); element; element = below_->Next()) {
      if (position_++ % num_ == index_) {
        return element;
      }
    }
    return std::nullopt;
  }
  void Restart(std::uint64_t epoch) override {
    position_ = 0;
    below_->Restart(epoch);
  }

 private:
  StagePtr<T> below_;
  std::size_t num_;
  std::size_t index_;
  std::size_t position_ = 0;
};

template <typename T>
class CacheStage final : public Stage<T> {
 public:
  explicit CacheStage(StagePtr<T> below) : below_(std::move(below)) {}
  std::optional<T> Next() override {
    if (position_ < elements_.size()) {
      return elements_[position_++];
    }
    if (complete_) {
      return std::nullopt;
    }
    std::optional<T> element = below_->Next();
    if (element) {
      elements_.push_back(*element);
      ++position_;
    } else {
      complete_ = true;
      below_.reset();
    }
    return element;
  }
  // What an epoch that was cut short has not read is read when it is asked for; the stage below is
  // never restarted.
  void Restart(std::uint64_t /*epoch*/) override { position_ = 0; }

 private:
  StagePtr<T> below_;
  std::vector<T> elements_;
  std::size_t position_ = 0;
  bool complete_ = false;
};

template <typename In, typename Out>
class MapStage final : public Stage<Out> {
 public:
  MapStage(StagePtr<In> below, std::function<Out(const In&)> function, std::size_t threads)
      : below_(std::move(below)), function_(std::move(function)), pool_(threads) {}
  std::optional<Out> Next() override {
    if (position_ == outputs_.size()) {
      Fill();
    }
    return position_ < outputs_.size() ? std::move(outputs_[position_++]) : std::nullopt;
  }
  void Restart(std::uint64_t epoch) override {
    outputs_.clear();
    position_ = 0;
    below_->Restart(epoch);
  }

 private:
  void Fill() {
    std::vector<In> inputs;
    while (inputs.size() < pool_.NumThreads()) {
      std::optional<In> input = below_->Next();
      if (!input) {
        break;
      }
      inputs.push_back(std::move(*input));
    }
    position_ = 0;
    outputs_.assign(inputs.size(), std::nullopt);
    pool_.Run(inputs.size(), [&](std::size_t i) { outputs_[i] = function_(inputs[i]); });
  }

  StagePtr<In> below_;
  std::function<Out(const In&)> function_;
  std::vector<std::optional<Out>> outputs_;
  std::size_t position_ = 0;
  ThreadPool pool_;
};

template <typename T>
class ShuffleStage final : public Stage<T> {
 public:
  ShuffleStage(StagePtr<T> below, std::uint64_t seed, std::size_t window)
      : below_(std::move(below)), seed_(seed), window_(window), random_(SeedOf(0)) {}
  std::optional<T> Next() override {
    while (!below_ended_ && held_.size() < window_) {
      std::optional<T> element = below_->Next();
      below_ended_ = !element;
      if (element) {
        held_.push_back(std::move(*element));
      }
    }
    if (held_.empty()) {
      return std::nullopt;
    }
    std::swap(held_[random_.Below(held_.size())], held_.back());
    std::optional<T> element = std::move(held_.back());
    held_.pop_back();
    return element;
  }
  void Restart(std::uint64_t epoch) override {
    held_.clear();
    below_ended_ = false;
    random_ = SeededRandom(SeedOf(epoch));
    below_->Restart(epoch);
  }

 private:
  // Neighbouring epochs must not give neighbouring states of the generator.
  std::uint64_t SeedOf(std::uint64_t epoch) const {
    SeededRandom mixer(seed_);
    return mixer.Next64() ^ SeededRandom(epoch).Next64();
  }

  StagePtr<T> below_;
  std::uint64_t seed_;
  std::size_t window_;
  SeededRandom random_;
  std::vector<T> held_;
  bool below_ended_ = false;
};

template <typename T>
class BatchStage final : public Stage<std::vector<T>> {
 public:
  BatchStage(StagePtr<T> below, std::size_t size, bool keep_last)
      : below_(std::move(below)), size_(size), keep_last_(keep_last) {}
  std::optional<std::vector<T>> Next() override {
    std::vector<T> batch;
    while (batch.size() < size_) {
      std::optional<T> element = below_->Next();
      if (!element) {
        break;
      }
      batch.push_back(std::move(*element));
    }
    if (batch.empty() || (batch.size() < size_ && !keep_last_)) {
      return std::nullopt;
    }
    return batch;
  }
  void Restart(std::uint64_t epoch) override { below_->Restart(epoch); }

 private:
  StagePtr<T> below_;
  std::size_t size_;
  bool keep_last_;
};

template <typename T>
class RepeatStage final : public Stage<T> {
 public:
  explicit RepeatStage(StagePtr<T> below) : below_(std::move(below)) {}
  std::optional<T> Next() override {
    std::optional<T> element = below_->Next();
    if (!element) {
      below_->Restart(++epoch_);
      element = below_->Next();
    }
    return element;
  }
  void Restart(std::uint64_t epoch) override {
    epoch_ = epoch;
    below_->Restart(epoch);
  }

 private:
  StagePtr<T> below_;
  std::uint64_t epoch_ = 0;
};

}  // namespace internal

enum class LastBatch : std::uint8_t { kDrop = 0, kKeep = 1 };

// 0, 1, ..., size - 1.
inline StagePtr<std::size_t> Range(std::size_t size) {
  return std::make_unique<internal::RangeStage>(size);
}

// The elements whose position modulo `num` is `index`; index < num.
template <typename T>
StagePtr<T> Shard(StagePtr<T> below, std::size_t num, std::size_t index) {
  DOMICILE_CHECK(index < num);
  return std::make_unique<internal::ShardStage<T>>(std::move(below), num, index);
}

// Reads the stage below once; later epochs come from memory. Copies elements.
template <typename T>
StagePtr<T> Cache(StagePtr<T> below) {
  return std::make_unique<internal::CacheStage<T>>(std::move(below));
}

// function(element), on a pool of `threads` >= 1, in order. `function` must not throw and must be
// callable from several threads.
template <typename In, typename Out>
StagePtr<Out> Map(StagePtr<In> below, std::function<Out(const In&)> function, std::size_t threads) {
  return std::make_unique<internal::MapStage<In, Out>>(std::move(below), std::move(function),
                                                       threads);
}

// A random order from (seed, epoch), uniform where `window` >= the number of elements: that many
// are held at a time.
template <typename T>
StagePtr<T> Shuffle(StagePtr<T> below, std::uint64_t seed, std::size_t window) {
  return std::make_unique<internal::ShuffleStage<T>>(std::move(below), seed,
                                                     std::max<std::size_t>(window, 1));
}

// Groups of `size` >= 1 elements. A shorter last one is given too, or dropped.
template <typename T>
StagePtr<std::vector<T>> Batch(StagePtr<T> below, std::size_t size, LastBatch last) {
  DOMICILE_CHECK(size >= 1);
  return std::make_unique<internal::BatchStage<T>>(std::move(below), size,
                                                   last == LastBatch::kKeep);
}

// Epoch after epoch without end; ends only if an epoch is empty.
template <typename T>
StagePtr<T> Repeat(StagePtr<T> below) {
  return std::make_unique<internal::RepeatStage<T>>(std::move(below));
}

}  // namespace domicile::models
