// The stages behind models/data/pipeline.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/data/stage.h"
#include "models/thread_pool.h"

namespace domicile::models::internal {

class RangeStage final : public Stage<std::size_t> {
 public:
  explicit RangeStage(std::size_t size) : size_(size) {}
  std::optional<std::size_t> Next() override {
    return next_ < size_ ? std::optional(next_++) : std::nullopt;
  }
  void Restart(std::uint64_t /*epoch*/) override { next_ = 0; }
  std::size_t Skip(std::size_t count) override {
    const std::size_t skipped = std::min(count, size_ - next_);
    next_ += skipped;
    return skipped;
  }

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
  std::size_t Skip(std::size_t count) override {
    std::size_t skipped = 0;
    for (; skipped < count; ++skipped) {
      const std::size_t others = (index_ + num_ - position_ % num_) % num_;
      const std::size_t passed = below_->Skip(others + 1);
      position_ += passed;
      if (passed <= others) {
        break;
      }
    }
    return skipped;
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
  std::size_t Skip(std::size_t count) override {
    const std::size_t held = std::min(count, elements_.size() - position_);
    position_ += held;
    return held + Stage<T>::Skip(count - held);  // the rest must be read, to be held
  }

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
  // The function is not called for what is passed over.
  std::size_t Skip(std::size_t count) override {
    const std::size_t made = std::min(count, outputs_.size() - position_);
    position_ += made;
    return made + below_->Skip(count - made);
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
  std::size_t Skip(std::size_t count) override {
    if (count > SIZE_MAX / size_) {
      return Stage<std::vector<T>>::Skip(count);
    }
    const std::size_t skipped = below_->Skip(count * size_);
    return skipped / size_ + (keep_last_ && skipped % size_ != 0 ? 1 : 0);
  }

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
  std::size_t Skip(std::size_t count) override {
    std::size_t skipped = below_->Skip(count);
    while (skipped < count) {
      below_->Restart(++epoch_);
      const std::size_t more = below_->Skip(count - skipped);
      if (more == 0) {
        break;  // an empty epoch
      }
      skipped += more;
    }
    return skipped;
  }

 private:
  StagePtr<T> below_;
  std::uint64_t epoch_ = 0;
};

}  // namespace domicile::models::internal
